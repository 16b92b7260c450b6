"""Why a result is what it is: every step from the original to it, and why a rule did not fire."""
