// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// auditFlags are the flags of kube-apiserver beside those that name files.
var auditFlags = []string{
	"--audit-webhook-batch-max-wait=200ms",
	"--audit-webhook-batch-throttle-enable=false",
	"--audit-webhook-initial-backoff=1s",
	"--audit-webhook-truncate-enabled=true",
	"--audit-webhook-truncate-max-event-size=4194304",
}

// nextSteps returns what to do with the files.
func (w *webhookConfig) nextSteps(server *registration) string {
	var text strings.Builder
	write := func(format string, args ...any) { _, _ = fmt.Fprintf(&text, format+"\n", args...) } // A Builder has no errors.
	write("The files are in %s. Keep %s elsewhere: a user who has it can write any author into your history.", w.dir, auditAuthorityKey)
	write("\n1. Give the server the authority, and name it in the values of the chart:\n")
	write("   kubectl create secret generic slipstream-audit -n %s %s",
		server.namespace, cli.Quoted("--from-file=ca.crt="+filepath.Join(w.dir, auditAuthority)))
	write("\n   attribution: {audit: {clientCASecret: slipstream-audit}}")
	write("\n2. Copy these to %s on every control-plane node, readable for kube-apiserver only:\n", w.nodeDir)
	write("   %s", strings.Join([]string{auditPolicy, auditKubeconfig, serverAuthority, auditClient, auditClientKey}, " "))
	write("\n3. Add these flags to kube-apiserver, and restart one after the other:\n")
	for _, flag := range append([]string{
		"--audit-policy-file=" + path.Join(w.nodeDir, auditPolicy), "--audit-webhook-config-file=" + path.Join(w.nodeDir, auditKubeconfig),
	}, auditFlags...) {
		write("   %s", flag)
	}
	if w.direct {
		write("\n4. Give the server the secret of the admission webhook, and name it in the values of the chart, which then creates the webhook:\n")
		write("   kubectl create secret generic slipstream-admission -n %s %s",
			server.namespace, cli.Quoted("--from-file="+segmentFile+"="+filepath.Join(w.dir, segmentFile)))
		write("\n   attribution: {admission: {mode: direct, segmentSecret: slipstream-admission}}")
		write("\n   Without the chart: kubectl apply -f %s", cli.Quoted(filepath.Join(w.dir, directAdmission)))
	}
	return text.String()
}
