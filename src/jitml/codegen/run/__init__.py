"""Runs of compiled programs: what happens around them, whatever back end has made them."""
