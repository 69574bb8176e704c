"""What is offered to the front: what islands found, what is seen at once, a first look."""
