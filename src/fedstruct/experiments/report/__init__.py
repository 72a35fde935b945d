"""The report page: what run folders hold, as one HTML file that asks for nothing else."""
