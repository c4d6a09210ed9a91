"""From "run this script" to a TrainJob. What each module is about:

choice        what the user typed, as a value
program       the script, module or command, and its command line
frameworks    which runtime a script wants, by its imports
interpreter   which Python runs it on this machine, and with which environment
names         names of runs
trainjob      the TrainJob: a pure function of all that
runtimes      the TrainingRuntime of a run that asks for more than a TrainJob can say
travel        what goes along to another cluster: variables, working directory, output
archive       the working directory as a tar.gz
ignoring      what stays out of it
submission    what `run` creates: one TrainJob, and the objects that go with it
preparation   all of it together: finds the runtime, and makes the objects to create
"""
