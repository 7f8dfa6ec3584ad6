"""Write-back and side effects: what the function changes that is from outside, or that code which is not converted changes."""
