// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package fluxtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

// Applied waits until a Kustomization has applied a commit.
func (f *Flux) Applied(t testing.TB, kustomization, commit string) {
	t.Helper()
	mirrortest.Eventually(t, kustomization+" has applied "+commit, func(ctx context.Context) error {
		found, err := f.Try.Field(ctx, Namespace, "kustomization/"+kustomization,
			`{.status.lastAppliedRevision} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}`)
		want := "main@sha1:" + commit + " True Applied revision: main@sha1:" + commit
		if err == nil && found != want {
			source, _ := f.Try.Field(ctx, Namespace, "gitrepository/"+kustomization, `{.status.conditions[?(@.type=="Ready")].message}`)
			err = fmt.Errorf("status is %q, that of the source %q", found, source)
		}
		return err
	})
}

// ApplyAgain has a Kustomization apply everything again, without a new commit, and waits until it has.
func (f *Flux) ApplyAgain(t testing.TB, kustomization string) {
	t.Helper()
	at := time.Now().Format(time.RFC3339Nano)
	f.Patch(t, Namespace, "kustomization/"+kustomization, fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, at))
	f.HasField(t, Namespace, "kustomization/"+kustomization, "{.status.lastHandledReconcileAt}", at)
}
