"""Command lines of pages and helps that no test here runs, each with the reason. A pattern matches a whole line."""

from __future__ import annotations

NOT_RUN = {
    r"make [\w-]+( .*)?": "targets of the Makefile: .ci/run has those that check something",
    r"source \.venv/bin/activate": "made by make setup, in which these tests run",
    r"export KUBECONFIG=.*": "the test's environment has it",
    r"python bench/.*": "takes hours; make bench-check runs the short form",
    r"python -m trainwright\.testing\.plans .*": "tests/faults carries out all plans",
    r"trainwright run examples/.*": "tests/examples runs every example",
    r"docker .*": "no test has a container engine (docs/status.md)",
    r"kubectl apply --server-side -k manifests/.*": "needs the image: tests/kube/test_manifests.py checks them",
    r"helm .*": "needs Helm and a real cluster: tests/cluster/test_chart.py and test_release.py run it",
    r"kubectl -n kubeflow-system (get|logs) .*": "needs the operator's pods",
    r"kubectl apply -f examples/plugins/plainjob/.*": "needs a real cluster: tests/kube/test_operator_plainjob.py",
    r"kubectl -n kubeflow-system create configmap .*": "needs the operator's pod: tests/kube/test_manifests.py",
    r"pip install (dist/trainwright-.*|\./examples/.*|trainwright.*)": "make dist does so in an empty environment",
    r"source <\(trainwright completion zsh\)": "tests/unit/cli/completion/test_completion.py runs it in zsh",
    r"trainwright completion fish \| source": "tests/unit/cli/completion/test_completion.py runs it in fish",
    r"trainwright initialize \w+ (hf|s3|https)://.*": "needs a network; tests/initializers has servers of its own",
    r"trainwright operator .*": "stays until it is ended, and needs a real cluster: tests/kube runs it",
    r"(trainwright|kubectl) scale .*": "needs PyTorch: tests/training/test_elastic.py and tests/kube run it",
    r"trainwright (ui|dashboard)( .*)?": "stays until it is ended: tests/browser opens it",
    r"trainwright up .*--ui.*": "tests/browser starts it so",
    r"kubectl create token .*": "needs the dashboard's cluster: tests/browser/test_namespaces.py signs in with one",
    r"trainwright convert .*": "tests/training/test_conversion.py converts such files, and a cluster's",
    r"trainwright exec .* -- nvidia-smi": "needs a GPU",
    r"trainwright cp .*": "writes to /tmp, which local pods share: tests/embedded/test_rank_commands.py runs it",
    r"trainwright exec mnist": "a shell at a terminal: tests/embedded/test_rank_commands.py has one",
    r"trainwright exec .* -- py-spy .*": "needs py-spy, which is the reader's own",
    r"trainwright run .*--procs .*": "needs PyTorch: tests/training runs it",
    r"trainwright run .*--context prod.*": "needs an image with Python: tests/embedded/test_run_elsewhere.py runs it",
}
