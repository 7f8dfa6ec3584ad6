"""Users' functions of numbers, which another compiler compiles, in programs: `jitml.elementwise`."""
