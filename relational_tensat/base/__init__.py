"""What every room stands on: errors, files, resources, interrupts and deadlines."""
