"""The twelve samples that the demo judges, `samples.jsonl`."""
