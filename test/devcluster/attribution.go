// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/artifacts/attribution"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// AuditUser is the user from whom the server accepts audit events.
const AuditUser = "kube-apiserver-audit"

// Files through which the control plane reports who makes changes. Those that users apply are named as in
// artifacts/attribution, with the folder of the certificates in the place of nodeFolder.
const (
	nodeFolder = "/etc/kubernetes/slipstream"

	auditAuthority   = "audit-ca"
	auditCertificate = "audit-client"
	admissionSegment = "admission-segment"

	auditPolicy         = "audit-policy.yaml"
	auditKubeconfig     = "audit-webhook-kubeconfig.yaml"
	aggregatedAdmission = "validating-webhook-configuration.yaml"
	directAdmission     = "validating-webhook-configuration-direct.yaml"
)

// reviewCountOK is the start of the line in kube-apiserver's metrics that counts the admission reviews with a response.
const reviewCountOK = `apiserver_admission_webhook_request_total{code="200",name="attribution.configbutler.ai"`

// segmentSize is the number of random bytes in the secret path of admission reviews.
const segmentSize = 32

// attributionFile returns a file of artifacts/attribution adapted to this cluster, with more replacements.
func (c *Cluster) attributionFile(name string, replacements ...string) (string, error) {
	content, err := fs.ReadFile(attribution.Files, name)
	if err != nil {
		return "", fmt.Errorf("failed to read a file of attribution: %w", err)
	}
	return strings.NewReplacer(append(replacements, nodeFolder, c.files.pki())...).Replace(string(content)), nil
}

// writeAttribution creates what the control plane and the server need before they start. The audit webhook's certificate
// has an authority of its own: no user of the cluster may speak for the API server.
func (c *Cluster) writeAttribution() error {
	authority, err := c.writeAuthority(auditAuthority)
	if err != nil {
		return err
	}
	if err := c.writeClient(authority, auditCertificate, AuditUser); err != nil {
		return err
	}
	kubeconfig, err := c.attributionFile(auditKubeconfig, "${ADDRESS}", address(c.state.Ports.Server))
	if err != nil {
		return err
	}
	if err := writeWhole(c.files.attribution(auditKubeconfig), []byte(kubeconfig)); err != nil {
		return err
	}
	if err := c.writeAuditPolicy(); err != nil {
		return err
	}
	segment := make([]byte, segmentSize)
	if _, err := rand.Read(segment); err != nil {
		return fmt.Errorf("failed to create the secret of admission reviews: %w", err)
	}
	return writeWhole(c.files.attribution(admissionSegment), []byte(hex.EncodeToString(segment)+"\n"))
}

// auditFlags make kube-apiserver send audit events to the server, which need not run: each batch is retried for some
// seconds in parallel with others, and then dropped. Events are sent soon, since changes wait for them, and complete
// unless they are larger than an object and its request can be.
func (c *Cluster) auditFlags() []string {
	flags := c.auditLogFlags()
	if !c.state.Options.Audit {
		return flags
	}
	return append(flags,
		"--audit-webhook-config-file="+c.files.attribution(auditKubeconfig),
		"--audit-webhook-mode=batch",
		"--audit-webhook-batch-max-wait=200ms",
		"--audit-webhook-batch-throttle-enable=false",
		"--audit-webhook-initial-backoff=1s",
		"--audit-webhook-truncate-enabled",
		"--audit-webhook-truncate-max-event-size=4194304",
	)
}

// AuditWebhook returns the kubeconfig with which kube-apiserver posts audit events to the server.
func (c *Cluster) AuditWebhook() Kubeconfig { return Kubeconfig(c.files.attribution(auditKubeconfig)) }

// attributionFlags make the server accept what the control plane reports.
func (c *Cluster) attributionFlags() []string {
	var flags []string
	if c.state.Options.Audit {
		flags = append(flags,
			"--audit-client-ca-file="+c.files.certificate(auditAuthority),
			"--audit-client-names="+AuditUser,
		)
	}
	if c.state.Options.Admission {
		flags = append(flags, "--admission-segment-file="+c.files.attribution(admissionSegment))
	}
	return flags
}

// registerAdmission makes kube-apiserver send reviews of changes to the server, and waits until it does.
func (c *Cluster) registerAdmission(ctx context.Context) error {
	if !c.state.Options.Admission {
		return nil
	}
	manifest, err := c.attributionFile(aggregatedAdmission)
	if err != nil {
		return err
	}
	return c.applyAdmission(ctx, manifest)
}

// UseDirectAdmission makes kube-apiserver send reviews of changes to the server without the aggregator, and
// returns when it does. It needs the option Admission.
func (c *Cluster) UseDirectAdmission(ctx context.Context) error {
	bundle, err := pki.Read(c.files.pki(), serverAuthority)
	if err != nil {
		return err
	}
	segment, err := os.ReadFile(c.files.attribution(admissionSegment))
	if err != nil {
		return fmt.Errorf("failed to read the secret of admission reviews: %w", err)
	}
	manifest, err := c.attributionFile(directAdmission,
		"${CA_BUNDLE}", base64.StdEncoding.EncodeToString(bundle.Certificate),
		"${SEGMENT}", strings.TrimSpace(string(segment)),
		"port: 443", fmt.Sprintf("port: %d", c.state.Ports.Server),
	)
	if err != nil {
		return err
	}
	return c.applyAdmission(ctx, manifest)
}

// applyAdmission applies a configuration of the webhook, and changes the server's namespace until kube-apiserver counts
// a response of the server.
func (c *Cluster) applyAdmission(ctx context.Context, manifest string) error {
	admin, err := c.adminClient()
	if err != nil {
		return err
	}
	before, err := completedReviews(ctx, admin)
	if err != nil {
		return err
	}
	if err := c.apply(ctx, manifest); err != nil {
		return fmt.Errorf("failed to register the admission webhook: %w", err)
	}
	now := before
	var last error // A failed request is repeated.
	err = wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, func(ctx context.Context) (bool, error) {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"configbutler.ai/reviewed":%q}}}`, rand.Text())
		_, last = admin.CoreV1().Namespaces().Patch(ctx, ServerNamespace, types.MergePatchType, change, metav1.PatchOptions{})
		if last == nil {
			now, last = completedReviews(ctx, admin)
		}
		return last == nil && now != before, nil
	})
	if err != nil {
		return withLog(fmt.Errorf("kube-apiserver sends no admission reviews: %w", errors.Join(err, last)), c.files.log(serverPart))
	}
	return nil
}

// completedReviews returns the lines in which kube-apiserver counts the reviews with a response of the server.
func completedReviews(ctx context.Context, admin *kubernetes.Clientset) (string, error) {
	metrics, err := admin.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("failed to read kube-apiserver's metrics: %w", err)
	}
	var counts []string
	for line := range strings.Lines(string(metrics)) {
		if strings.HasPrefix(line, reviewCountOK) {
			counts = append(counts, line)
		}
	}
	return strings.Join(counts, ""), nil
}
