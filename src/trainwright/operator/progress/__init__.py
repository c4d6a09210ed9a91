"""What training code reports: `reports` reads a report, `server` writes it to the TrainJob's status."""
