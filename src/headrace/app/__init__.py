"""What users declare: an App with its handlers, and publishing. No loop runs here; worker/ does that."""
