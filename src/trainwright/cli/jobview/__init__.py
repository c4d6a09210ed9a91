"""A TrainJob as commands see it: which one is meant, what it consists of, and its state in words.

naming      the TrainJob that a name or the id of a run means
kinds       kinds of objects, by all their names
progress    how far its training is, in words and as a bar
view        the job, its JobSet and its pods, kept current by three watches
parts       all objects that it consists of
"""
