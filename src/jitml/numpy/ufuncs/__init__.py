"""Universal functions: promotion, loops, powers, scalars."""
