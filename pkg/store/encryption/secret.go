// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"bytes"
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// SecretName is the name of the Secret of a [ClusterSecret].
	SecretName = "slipstream-encryption" //nolint:gosec // The name of a Secret, not its content.
	// secretKey is the key of its entry.
	secretKey = FileName
)

// ClusterSecret stores a configuration in the Secret [SecretName], which all replicas share.
type ClusterSecret struct {
	// Client is the client for the Secrets of Namespace, the server's own.
	Client    typedv1.SecretInterface
	Namespace string
}

var _ Home = ClusterSecret{}

// String returns a description of the Secret.
func (s ClusterSecret) String() string {
	return fmt.Sprintf("Secret %s/%s (%s)", s.Namespace, SecretName, secretKey)
}

func (s ClusterSecret) shared() bool { return true }

// Read returns the entry of the Secret.
func (s ClusterSecret) Read(ctx context.Context) ([]byte, error) {
	_, content, err := s.get(ctx)
	if err == nil && content == nil {
		return nil, fmt.Errorf("%s: %w", s, ErrAbsent)
	}
	return content, err
}

// get returns the Secret and its entry, nil if missing.
func (s ClusterSecret) get(ctx context.Context) (*corev1.Secret, []byte, error) {
	secret, err := s.Client.Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("getting %s: %w", s, err)
	}
	return secret, secret.Data[secretKey], nil
}

// Change creates or updates the Secret, whichever replica is first.
func (s ClusterSecret) Change(ctx context.Context, change func([]byte) ([]byte, error)) error {
	overtaken := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, overtaken, func() error {
		secret, content, err := s.get(ctx)
		if err != nil {
			return err
		}
		changed, err := change(content)
		if err != nil || bytes.Equal(changed, content) {
			return err
		}
		return s.put(ctx, secret, changed)
	})
}

// put writes the entry to the existing Secret, or creates one.
func (s ClusterSecret) put(ctx context.Context, secret *corev1.Secret, content []byte) error {
	if secret == nil {
		_, err := s.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: SecretName, Annotations: map[string]string{v1alpha1.AnnotationMirror: "false"}},
			Data:       map[string][]byte{secretKey: content},
		}, metav1.CreateOptions{})
		return err
	}
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[secretKey] = content
	_, err := s.Client.Update(ctx, secret, metav1.UpdateOptions{})
	return err
}

// path returns one end of a pipe, so that the keys are not written to disk.
func (s ClusterSecret) path(content []byte) (string, func(), error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("creating a pipe: %w", err)
	}
	go func() {
		// A reader that does not read all of it gets a truncated configuration, which is an error of its own.
		_, _ = writer.Write(content)
		_ = writer.Close()
	}()
	return fmt.Sprintf("/dev/fd/%d", reader.Fd()), func() { _ = reader.Close() }, nil
}
