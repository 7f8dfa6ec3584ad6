"""What is imported when: modules by need, and classes of modules that may never be imported."""
