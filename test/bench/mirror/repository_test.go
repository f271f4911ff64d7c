// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/configbutler/slipstream/test/bench/bare"
	"github.com/configbutler/slipstream/test/bench/configmaps"
)

// repository reads the bare repository of a mirror.
type repository struct{ *bare.Repository }

// open opens the repository, which must exist.
func (m *mirror) open(b *testing.B) *repository {
	b.Helper()
	return &repository{bare.Open(b, m.repository)}
}

// holds reports whether a commit has the current state of a ConfigMap.
func (r *repository) holds(commit string, object *corev1.ConfigMap) (bool, error) {
	return r.Holds(commit, filePath(object.Namespace, object.Name), configmaps.Line(object))
}

// arrived waits until the branch has the current state of a ConfigMap and returns the time.
func (r *repository) arrived(ctx context.Context, from string, object *corev1.ConfigMap) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return r.Arrived(ctx, from, filePath(object.Namespace, object.Name), configmaps.Line(object))
}

func filePath(namespace, name string) string {
	return baseFolder + "/core/v1/configmaps/" + namespace + "/" + name + ".yaml"
}
