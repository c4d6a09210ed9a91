// The entry to JobSet's own controller specs that judges a program of ours in place of JobSet's Go manager.
//
// tests/kube/jobsetspecs/specs.py puts this file in place of the specs' suite_test.go when they are compiled. The program
// and its arguments come from TRAINWRIGHT_CONTROLLER (separated by newlines); it gets KUBECONFIG and --feature-gates, and
// is ready when it prints a line. It judges changes of JobSets by webhook too: one spec wants such a change refused, which
// JobSet's own suite, without webhooks, leaves to a conflict with the controller's writes. New JobSets it does not judge:
// some specs create ones that JobSet's webhook would refuse. Specs switch JobSet's gates inside this process: before any write of a spec reaches the
// API server, the program is started again if the gates differ from those it was started with.
package controllertest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/features"
)

// Names that the specs use.
var (
	cfg       *rest.Config
	k8sClient client.Client
	testEnv   *envtest.Environment
	ctx       context.Context
	cancel    context.CancelFunc
)

// program is the controller under judgement.
type program struct {
	lock       sync.Mutex
	kubeconfig string
	gates      string
	command    *exec.Cmd
}

var judged = &program{}

func gatesNow() string {
	return fmt.Sprintf("RestartJob=%t,ElasticJobSet=%t", features.Enabled(features.RestartJob), features.Enabled(features.ElasticJobSet))
}

// follow starts the program, or starts it again when a spec has switched a gate.
func (p *program) follow() error {
	p.lock.Lock()
	defer p.lock.Unlock()
	wanted := gatesNow()
	if p.command != nil && p.gates == wanted {
		return nil
	}
	p.stop()
	words := strings.Split(os.Getenv("TRAINWRIGHT_CONTROLLER"), "\n")
	webhooks := testEnv.WebhookInstallOptions
	command := exec.Command(words[0], append(words[1:],
		"--kubeconfig", p.kubeconfig, "--feature-gates", wanted,
		"--webhook-port", fmt.Sprint(webhooks.LocalServingPort),
		"--tls-cert", filepath.Join(webhooks.LocalServingCertDir, "tls.crt"),
		"--tls-key", filepath.Join(webhooks.LocalServingCertDir, "tls.key"),
	)...)
	log, err := os.OpenFile(os.Getenv("TRAINWRIGHT_CONTROLLER_LOG"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(log, "--- %s\n", wanted)
	command.Stderr = log
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	if _, err := bufio.NewReader(output).ReadString('\n'); err != nil {
		return fmt.Errorf("the controller did not become ready: %w", err)
	}
	p.command, p.gates = command, wanted
	return nil
}

func (p *program) stop() {
	if p.command == nil {
		return
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = p.command.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = p.command.Process.Kill()
		<-done
	}
	p.command = nil
}

// following is a client whose every write meets a program with the gates of the moment.
func following(inner client.WithWatch) client.Client {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := judged.follow(); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := judged.follow(); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
	})
}

func judgementOfChanges() *admissionv1.ValidatingWebhookConfiguration {
	path, none := "/validate-jobset-x-k8s-io-v1alpha2-jobset", admissionv1.SideEffectClassNone
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "jobset-changes"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "vjobset.kb.io",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             &none,
			ClientConfig: admissionv1.WebhookClientConfig{
				Service: &admissionv1.ServiceReference{Namespace: "system", Name: "webhook-service", Path: &path},
			},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule: admissionv1.Rule{
					APIGroups: []string{"jobset.x-k8s.io"}, APIVersions: []string{"v1alpha2"}, Resources: []string{"jobsets"},
				},
			}},
		}},
	}
}

func TestAPIs(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "JobSet's controller specs on a program of ours")
}

var _ = BeforeSuite(func() {
	ctx, cancel = context.WithCancel(context.Background())
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{os.Getenv("TRAINWRIGHT_CRDS")},
		ErrorIfCRDPathMissing: true,
		// A machine that is busy with other tests takes its time.
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
		WebhookInstallOptions: envtest.WebhookInstallOptions{
			ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{judgementOfChanges()},
		},
	}
	var err error
	cfg, err = testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	Expect(jobset.AddToScheme(scheme.Scheme)).To(Succeed())

	user, err := testEnv.AddUser(envtest.User{Name: "controller", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	directory := GinkgoT().TempDir()
	judged.kubeconfig = filepath.Join(directory, "kubeconfig")
	Expect(os.WriteFile(judged.kubeconfig, kubeconfig, 0o600)).To(Succeed())

	inner, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())
	k8sClient = following(inner)
	Expect(judged.follow()).To(Succeed())
})

var _ = AfterSuite(func() {
	cancel()
	judged.lock.Lock()
	judged.stop()
	judged.lock.Unlock()
	Expect(testEnv.Stop()).To(Succeed())
})
