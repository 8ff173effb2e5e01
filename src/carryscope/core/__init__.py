"""What every room stands on: errors, files, numbers with intervals, progress, workers."""
