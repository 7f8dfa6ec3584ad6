"""Objects from outside and made inside, and passages of real code: what drawn programs of people keep, change and hand around."""
