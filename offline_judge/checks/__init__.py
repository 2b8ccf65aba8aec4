"""Looking at this installation and at a judge: doctor, probes, known answers."""
