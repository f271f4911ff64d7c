// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/configbutler/slipstream/artifacts/attribution"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

// AuditUser is whom the server takes audit events from.
const AuditUser = "kube-apiserver-audit"

// Files by which the control plane tells who makes changes. Those that people apply are named as in
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

// askedOK begins the line in kube-apiserver's metrics that counts the admission reviews that the server has answered.
const askedOK = `apiserver_admission_webhook_request_total{code="200",name="attribution.configbutler.ai"`

// segmentSize is the number of random bytes in the secret path of admission reviews.
const segmentSize = 32

// attributionFile returns a file of artifacts/attribution as it is for this cluster, with more replacements.
func (c *Cluster) attributionFile(name string, replacements ...string) (string, error) {
	content, err := fs.ReadFile(attribution.Files, name)
	if err != nil {
		return "", fmt.Errorf("reading a file of attribution: %w", err)
	}
	return strings.NewReplacer(append(replacements, nodeFolder, c.files.pki())...).Replace(string(content)), nil
}

// writeAttribution makes what the control plane and the server need before they start. The audit webhook's certificate
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
		return fmt.Errorf("making the secret of admission reviews: %w", err)
	}
	return writeWhole(c.files.attribution(admissionSegment), []byte(hex.EncodeToString(segment)+"\n"))
}

// auditFlags make kube-apiserver send audit events to the server, which need not run: each batch is tried for some
// seconds beside the others, and then dropped. Events are sent soon, since changes wait for them, and whole unless they
// are larger than an object and the request for it may be.
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

// attributionFlags make the server take what the control plane tells.
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

// registerAdmission makes kube-apiserver ask the server about changes, and waits until it does.
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

// UseDirectAdmission makes kube-apiserver ask the server about changes without the aggregator between them, and
// returns when it does. It needs the option Admission.
func (c *Cluster) UseDirectAdmission(ctx context.Context) error {
	bundle, err := pki.Read(c.files.pki(), serverAuthority)
	if err != nil {
		return err
	}
	segment, err := os.ReadFile(c.files.attribution(admissionSegment))
	if err != nil {
		return fmt.Errorf("reading the secret of admission reviews: %w", err)
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
// that the server has answered.
func (c *Cluster) applyAdmission(ctx context.Context, manifest string) error {
	admin := c.Kubectl(c.Admin())
	before, err := answeredReviews(ctx, admin)
	if err != nil {
		return err
	}
	if _, err := admin.Feed(ctx, manifest, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("registering the admission webhook: %w", err)
	}
	var now string
	err = wait.PollUntilContextTimeout(ctx, readyInterval, readyLimit, true, func(ctx context.Context) (bool, error) {
		if _, err := admin.Run(ctx, "annotate", "--overwrite", "namespace", ServerNamespace, "configbutler.ai/asked="+rand.Text()); err != nil {
			return false, err
		}
		now, err = answeredReviews(ctx, admin)
		return now != before, err
	})
	if err != nil {
		return withLog(fmt.Errorf("waiting for kube-apiserver to ask about changes: %w", err), c.files.log(serverPart))
	}
	return nil
}

// answeredReviews are the lines with which kube-apiserver counts the reviews that the server has answered.
func answeredReviews(ctx context.Context, admin Kubectl) (string, error) {
	metrics, err := admin.Run(ctx, "get", "--raw", "/metrics")
	if err != nil {
		return "", fmt.Errorf("reading kube-apiserver's metrics: %w", err)
	}
	var counts []string
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, askedOK) {
			counts = append(counts, line)
		}
	}
	return strings.Join(counts, ""), nil
}
