"""What single rows weigh in a judgement, and which of them lie far from a formula."""
