// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirrortest

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/test/testkit"
)

// live returns the value of each ConfigMap of the namespace by path, except for those that the cluster creates.
func (m *Mirror) live(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	list, err := client.CoreV1().ConfigMaps(m.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, object := range list.Items {
		if object.Name != "kube-root-ca.crt" {
			values[m.ConfigMapPath(object.Name)] = object.Data["value"]
		}
	}
	return values, nil
}

// mirrored returns the value of each ConfigMap in Git by path.
func (m *Mirror) mirrored(ctx context.Context) (map[string]string, error) {
	contents, err := m.Contents(ctx)
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for path, content := range contents {
		var object corev1.ConfigMap
		if err := yaml.UnmarshalStrict(content, &object); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		values[path] = object.Data["value"]
	}
	return values, nil
}

// Contents returns the files that Files returns, with their contents by path. It runs git once for all files.
func (m *Mirror) Contents(ctx context.Context) (map[string][]byte, error) {
	archive, err := m.Git(ctx, "archive", "--format=tar", m.Branch+":"+m.Folder)
	if err != nil {
		return nil, err
	}
	contents := map[string][]byte{}
	files := tar.NewReader(strings.NewReader(archive))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return contents, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg || header.Name == MarkerPath || header.Name == NotesPath {
			continue
		}
		if contents[header.Name], err = io.ReadAll(files); err != nil {
			return nil, err
		}
	}
}

// Equal waits until Git has the same ConfigMaps as the cluster.
func (m *Mirror) Equal(t testing.TB, client kubernetes.Interface) {
	t.Helper()
	m.EqualWithin(t, client, Deadline)
}

// EqualWithin is Equal with a timeout of the caller.
func (m *Mirror) EqualWithin(t testing.TB, client kubernetes.Interface, timeout time.Duration) {
	t.Helper()
	testkit.EventuallyWithin(t, timeout, "Git equals the cluster", func(ctx context.Context) error {
		want, err := m.live(ctx, client)
		if err != nil {
			return err
		}
		got, err := m.mirrored(ctx)
		switch {
		case err != nil:
			return err
		case len(got) != len(want):
			return fmt.Errorf("%d files for %d objects", len(got), len(want))
		case !maps.Equal(got, want):
			return fmt.Errorf("in Git %v, in the cluster %v", got, want)
		}
		return nil
	})
}
