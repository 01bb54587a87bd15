"""The ground floor: errors, files, options, progress and text, which know nothing of datasets or models."""
