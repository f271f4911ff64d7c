// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// authorityKey is the key of the Secret's entry with all authorities that clients trust.
const authorityKey = "ca.crt"

// OwnAuthority is the server's own authority, in a Secret that all replicas share. It is not safe for concurrent use.
type OwnAuthority struct {
	// Client accesses the Secret of that Name.
	Client typedv1.SecretInterface
	Name   string
	// Names are the names in certificates. The first is the one by which the cluster verifies the server.
	Names []string
	// CertificateLifetime and AuthorityLifetime are the validity periods. Both are renewed after two thirds.
	CertificateLifetime, AuthorityLifetime time.Duration

	// spare signs while there is no other authority.
	spare *authority
}

var _ Source = &OwnAuthority{}

// String returns the name of the Secret.
func (o *OwnAuthority) String() string { return "Secret " + o.Name }

func (o *OwnAuthority) hold() time.Duration { return o.CertificateLifetime }

// wanted falls back to the authority in memory if there is none in the Secret. It creates one only if the server has
// none yet: replacing an authority in use is up to the leader.
func (o *OwnAuthority) wanted(ctx context.Context, now time.Time, known ...*identity) (*identity, error) {
	signer, failure := o.shared(ctx, now, known[0])
	if signer == nil {
		var err error
		if signer, err = o.local(now, known[0]); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	for _, each := range known {
		if each != nil && each.signer.leaf().Equal(signer.leaf()) && each.sameTrust(&signer.identity) && !due(each.leaf(), now) {
			return each, failure
		}
	}
	signed, err := signer.sign(o.Names, now, o.CertificateLifetime)
	return signed, errors.Join(failure, err)
}

// shared returns the authority in the Secret, which is created at the start if it is missing. It returns nil if there
// is no usable one.
func (o *OwnAuthority) shared(ctx context.Context, now time.Time, shown *identity) (*authority, error) {
	secret, found, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	if found == nil && shown == nil {
		found, err = o.make(ctx, secret, now)
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
			_, found, err = o.read(ctx)
		}
	}
	if err != nil || found == nil {
		return nil, err
	}
	if !found.valid(now) {
		return nil, fmt.Errorf("%s has an authority that is valid from %s to %s only",
			o, found.leaf().NotBefore.UTC().Format(time.RFC3339), found.leaf().NotAfter.UTC().Format(time.RFC3339))
	}
	if shown != nil && shown.signer.leaf().Equal(found.leaf()) {
		return found, nil
	}
	if err := found.permits(o.Names, now); err != nil {
		return nil, fmt.Errorf("%s has an authority that may not sign for all names of this server, %s: %w", o, strings.Join(o.Names, ", "), err)
	}
	return found, nil
}

// local returns an authority that other replicas need not know: the signer of the served certificate, or one in memory.
func (o *OwnAuthority) local(now time.Time, shown *identity) (*authority, error) {
	if shown != nil && shown.signer.valid(now) {
		return shown.signer, nil
	}
	if o.spare == nil || !o.spare.valid(now) || due(o.spare.leaf(), now) {
		spare, err := newAuthority(o.Names, now, o.AuthorityLifetime)
		if err != nil {
			return nil, err
		}
		o.spare = spare
	}
	return o.spare, nil
}

func (o *OwnAuthority) changed(now time.Time, shown *identity) bool {
	return !shown.signer.valid(now) || due(shown.leaf(), now)
}

func (o *OwnAuthority) renewed(now time.Time, shown *identity) (*identity, error) {
	if !shown.signer.valid(now) || !due(shown.leaf(), now) {
		return shown, nil
	}
	signed, err := shown.signer.sign(o.Names, now, o.CertificateLifetime)
	if err != nil {
		return shown, err
	}
	return signed, nil
}

// read returns the Secret and its authority. Both are nil if the Secret does not exist; only the authority is nil if
// the Secret is empty. It returns an error if the Secret cannot be read or has other content.
func (o *OwnAuthority) read(ctx context.Context) (*corev1.Secret, *authority, error) {
	secret, err := o.Client.Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", o, err)
	}
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 && len(key) == 0 {
		return secret, nil, nil
	}
	found, err := parseAuthority(certificate, key, secret.Data[authorityKey])
	if err != nil {
		return secret, nil, fmt.Errorf("%s must have the certificate of an authority in %s and its private key in %s: %w",
			o, corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	return secret, found, nil
}

// make creates and stores a new authority.
func (o *OwnAuthority) make(ctx context.Context, secret *corev1.Secret, now time.Time) (*authority, error) {
	made, err := newAuthority(o.Names, now, o.AuthorityLifetime)
	if err != nil {
		return nil, err
	}
	if err := o.store(ctx, secret, made, encodeBundle(made.authorities)); err != nil {
		return nil, err
	}
	return made, nil
}

// store writes an authority to the given Secret, or to a new one. It fails with a conflict after a concurrent write.
func (o *OwnAuthority) store(ctx context.Context, secret *corev1.Secret, a *authority, bundle []byte) error {
	data := map[string][]byte{corev1.TLSCertKey: a.certificate, corev1.TLSPrivateKeyKey: a.key, authorityKey: bundle}
	var err error
	if secret == nil {
		_, err = o.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: o.Name, Annotations: map[string]string{v1alpha1.AnnotationMirror: "false"}},
			Type:       corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{FieldManager: fieldManager})
	} else {
		secret = secret.DeepCopy()
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		maps.Copy(secret.Data, data)
		_, err = o.Client.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager})
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", o, err)
	}
	return nil
}
