"""Graph rewrites before differentiation, for derivatives that are exact or cheap."""
