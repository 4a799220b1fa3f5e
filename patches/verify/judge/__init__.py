"""From what a target sent to passed, failed or not run; pure."""
