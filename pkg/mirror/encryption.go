// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const (
	// The server's keys are read every keysInterval, or every keysRetry after an error.
	keysInterval = time.Minute
	keysRetry    = 5 * time.Second
	// keysTimeout bounds one read.
	keysTimeout = 15 * time.Second
)

// keyNeed is which of the server's keys destinations need.
type keyNeed int

const (
	needNone keyNeed = iota
	needSeed         // A destination encrypts for recipients of its own.
	needPair         // A destination encrypts for the server's key pair.
)

func needOf(destinations []*v1alpha1.GitDestination) keyNeed {
	need := needNone
	for _, d := range destinations {
		switch {
		case d.Spec.Secrets != v1alpha1.SecretsEncrypt:
		case len(ageRecipients(d)) > 0:
			need = max(need, needSeed)
		default:
			need = needPair
		}
	}
	return need
}

func ageRecipients(d *v1alpha1.GitDestination) []string {
	if d.Spec.Encryption == nil {
		return nil
	}
	return d.Spec.Encryption.AgeRecipients
}

// encryption keeps the server's keys up to date, as far as destinations need them.
type encryption struct {
	ring *keyring.Ring
	// changed is called when the keys have changed.
	changed func()

	mu   sync.Mutex
	need keyNeed
	keys keyring.Keys
	// readAt is when the keys were last read.
	readAt time.Time
}

func newEncryption(ring *keyring.Ring, changed func()) *encryption {
	return &encryption{ring: ring, changed: changed}
}

// keysFor returns the keys that destinations need. It reads those that were not needed before.
func (e *encryption) keysFor(ctx context.Context, destinations []*v1alpha1.GitDestination) keyring.Keys {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.need
	if e.need = needOf(destinations); e.need > before {
		e.read(ctx)
	}
	return e.keys
}

// read reads the keys. The caller holds mu.
func (e *encryption) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	e.keys, e.readAt = e.ring.Read(ctx, e.need == needPair), time.Now()
}

// run refreshes the keys until ctx ends.
func (e *encryption) run(ctx context.Context) {
	ticker := time.NewTicker(keysRetry)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if e.due() && e.refresh(ctx) {
			e.changed()
		}
	}
}

// due reports whether the keys must be read again.
func (e *encryption) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	trouble := errors.Join(e.keys.SeedError, e.keys.PairError) != nil
	return e.need != needNone && (trouble || time.Since(e.readAt) >= keysInterval)
}

// refresh reads the keys and reports whether they have changed.
func (e *encryption) refresh(ctx context.Context) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.keys
	e.read(ctx)
	return !e.keys.Equal(before)
}

// secretsPlan is how a destination writes Secrets.
type secretsPlan struct {
	// encrypter encrypts them; nil if they are not encrypted, or cannot be.
	encrypter *sops.Encrypter
	// fingerprint is that of encrypter; empty without one.
	fingerprint string
	// encrypted and reason are the status and the reason of the condition SecretsEncrypted.
	encrypted bool
	reason    conditions.Reason
}

func planSecrets(d *v1alpha1.GitDestination, keys keyring.Keys) secretsPlan {
	switch d.Spec.Secrets {
	case v1alpha1.SecretsAsIs:
		return secretsPlan{reason: conditions.Reason{
			Code: v1alpha1.ReasonSecretsAsIs, Message: "Secrets are written as they are, readable for everyone who can read the repository",
		}}
	case v1alpha1.SecretsOmit:
		return secretsPlan{reason: conditions.Reason{Code: v1alpha1.ReasonSecretsOmitted, Message: "Secrets are left out"}}
	}
	given := ageRecipients(d)
	recipients, trouble := given, keys.SeedError
	if len(given) == 0 {
		trouble = cmp.Or(trouble, keys.PairError)
		if keys.Recipient != "" {
			recipients = []string{keys.Recipient}
		}
	}
	if len(recipients) == 0 || len(keys.Seed) == 0 {
		return secretsUnavailable(trouble)
	}
	encrypter, err := sops.NewEncrypter(keys.Seed, recipients)
	if err != nil {
		return secretsUnavailable(err)
	}
	return secretsPlan{encrypter: encrypter, fingerprint: encrypter.Fingerprint(), encrypted: true, reason: encryptedFor(given, keys, trouble)}
}

func secretsUnavailable(why error) secretsPlan {
	message := "Secrets are left out, and those in the folder stay as they are, because they cannot be encrypted"
	if why != nil {
		message += ": " + why.Error()
	}
	return secretsPlan{reason: conditions.Reason{Code: v1alpha1.ReasonEncryptionUnavailable, Message: message}}
}

// encryptedFor returns the reason of SecretsEncrypted for encrypted Secrets. It names the recipients, and the error of the keys, if any.
func encryptedFor(given []string, keys keyring.Keys, trouble error) (reason conditions.Reason) {
	switch {
	case len(given) == 1:
		reason = conditions.Reason{Code: v1alpha1.ReasonRecipientsGiven, Message: fmt.Sprintf("Secrets are encrypted for %s", given[0])}
	case len(given) > 1:
		reason = conditions.Reason{Code: v1alpha1.ReasonRecipientsGiven, Message: fmt.Sprintf(
			"Secrets are encrypted for each of the %d recipients in spec.encryption.ageRecipients", len(given))}
	default:
		reason = conditions.Reason{Code: v1alpha1.ReasonKeyGenerated, Message: fmt.Sprintf(
			"Secrets are encrypted for %s; the private key is in the Secret %s: keep a copy of it elsewhere", keys.Recipient, keys.PairSecret)}
	}
	if trouble != nil {
		reason = conditions.Reason{Code: v1alpha1.ReasonKeyUnavailable, Message: reason.Message + ". But " + trouble.Error()}
	}
	return reason
}

// written returns an object as the destination writes it: without ignored fields, and encrypted if the plan says so.
func (p *destinationPlan) written(r rendered, object *unstructured.Unstructured) (rendered, error) {
	if reduced := p.ignore.Without(object); reduced != object {
		var err error
		if r, err = render(r.resource(), reduced, true); err != nil {
			return r, err
		}
		object = reduced
	}
	if r.encryption = p.encryptionOf(r.resource()); r.encryption == "" {
		return r, nil
	}
	content, err := p.secrets.encrypter.Encrypt(object)
	if err != nil {
		return r, fmt.Errorf("encrypt %s: %w", r.object, err)
	}
	r.content, r.hash = content, gitrepo.BlobHash(content)
	return r, nil
}

// encryptionOf returns the fingerprint of the encryption of objects of a type; empty if they are not encrypted.
func (p *destinationPlan) encryptionOf(t schema.GroupVersionResource) string {
	if t.GroupResource() != secretsResource {
		return ""
	}
	return p.secrets.fingerprint
}

// outdated reports whether the current plan would encrypt a change in another way. Such a change must not be pushed any more.
// The comparison that the new plan requests replaces it.
func (d *destination) outdated(change outbox.Change) bool {
	return change.Operation != v1alpha1.OperationDelete &&
		change.Encryption != d.plan.Load().encryptionOf(change.Object.GroupVersionResource())
}

// locked reports whether the file of an object stays as it is, because Secrets must be encrypted and cannot be.
func (p *destinationPlan) locked(o outbox.Object) bool {
	return o.GroupVersionResource().GroupResource() == secretsResource && p.object.Spec.Secrets == v1alpha1.SecretsEncrypt &&
		p.secrets.encrypter == nil
}
