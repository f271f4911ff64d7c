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
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const (
	// The server's keys are read again every keysInterval, or every keysRetry while
	// something is wrong with them.
	keysInterval = time.Minute
	keysRetry    = 5 * time.Second
	// keysTimeout bounds one reading.
	keysTimeout = 15 * time.Second
)

// keyNeed is which of the server's keys destinations need.
type keyNeed int

const (
	needNone keyNeed = iota
	needSeed         // somebody has Secrets encrypted for recipients of theirs
	needPair         // somebody has them encrypted for the server's own
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

// encryption follows the server's keys, as far as some destination needs them.
type encryption struct {
	ring *keyring.Ring
	// changed is called when the keys are not what they were.
	changed func()

	mu   sync.Mutex
	need keyNeed
	keys keyring.Keys
	// asked is when the keys were last read.
	asked time.Time
}

func newEncryption(ring *keyring.Ring, changed func()) *encryption {
	return &encryption{ring: ring, changed: changed}
}

// keysFor returns the keys, which are read now if nobody has needed them before.
func (e *encryption) keysFor(ctx context.Context, destinations []*v1alpha1.GitDestination) keyring.Keys {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.need
	if e.need = needOf(destinations); e.need > before {
		e.read(ctx)
	}
	return e.keys
}

// read brings the keys up to date. The caller holds mu.
func (e *encryption) read(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	e.keys, e.asked = e.ring.Read(ctx, e.need == needPair), time.Now()
}

// run follows the keys until ctx ends.
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

// due says whether it is time to read the keys again.
func (e *encryption) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	trouble := errors.Join(e.keys.SeedError, e.keys.PairError) != nil
	return e.need != needNone && (trouble || time.Since(e.asked) >= keysInterval)
}

// refresh reads the keys and says whether they are not what they were.
func (e *encryption) refresh(ctx context.Context) (changed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := e.keys
	e.read(ctx)
	return !e.keys.Equal(before)
}

// secretsPlan is how a destination writes Secrets.
type secretsPlan struct {
	// sealer encrypts them; nil when they are not to be encrypted, or cannot be.
	sealer *sops.Encrypter
	// sealing is the same for plans that give every Secret the same file; empty without a
	// sealer.
	sealing string
	// encrypted, reason and message are those of the condition SecretsEncrypted.
	encrypted       bool
	reason, message string
}

func planSecrets(d *v1alpha1.GitDestination, keys keyring.Keys) secretsPlan {
	switch d.Spec.Secrets {
	case v1alpha1.SecretsAsIs:
		return secretsPlan{reason: v1alpha1.ReasonSecretsAsIs, message: "Secrets are written as they are, readable for everyone who can read the repository"}
	case v1alpha1.SecretsOmit:
		return secretsPlan{reason: v1alpha1.ReasonSecretsOmitted, message: "Secrets are left out"}
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
	sealer, err := sops.NewEncrypter(keys.Seed, recipients)
	if err != nil {
		return secretsUnavailable(err)
	}
	plan := secretsPlan{sealer: sealer, sealing: sealer.Fingerprint(), encrypted: true}
	plan.reason, plan.message = encryptedFor(given, keys, trouble)
	return plan
}

func secretsUnavailable(why error) secretsPlan {
	message := "Secrets are left out, and those in the folder stay as they are, because they cannot be encrypted"
	if why != nil {
		message += ": " + why.Error()
	}
	return secretsPlan{reason: v1alpha1.ReasonEncryptionUnavailable, message: message}
}

// encryptedFor says for whom Secrets are encrypted, and what is wrong all the same.
func encryptedFor(given []string, keys keyring.Keys, trouble error) (reason, message string) {
	switch {
	case len(given) == 1:
		reason, message = v1alpha1.ReasonRecipientsGiven, fmt.Sprintf("Secrets are encrypted for %s", given[0])
	case len(given) > 1:
		reason, message = v1alpha1.ReasonRecipientsGiven, fmt.Sprintf("Secrets are encrypted for each of the %d recipients in spec.encryption.ageRecipients", len(given))
	default:
		reason, message = v1alpha1.ReasonKeyGenerated, fmt.Sprintf(
			"Secrets are encrypted for %s; the private key is in the Secret %s: keep a copy of it elsewhere", keys.Recipient, keys.PairSecret)
	}
	if trouble != nil {
		reason, message = v1alpha1.ReasonKeyUnavailable, message+". But "+trouble.Error()
	}
	return reason, message
}

// written is an object as the destination writes it: without the fields that it leaves out,
// and encrypted where that is asked for.
func (p *destinationPlan) written(r rendered, object *unstructured.Unstructured) (rendered, error) {
	if reduced := p.ignore.Without(object); reduced != object {
		var err error
		if r, err = render(r.resource(), reduced, true); err != nil {
			return r, err
		}
		object = reduced
	}
	if r.sealing = p.sealing(r.resource()); r.sealing == "" {
		return r, nil
	}
	content, err := p.secrets.sealer.Encrypt(object)
	if err != nil {
		return r, fmt.Errorf("encrypt %s: %w", r.object, err)
	}
	r.content, r.hash = content, gitrepo.BlobHash(content)
	return r, nil
}

// sealing tells how objects of a type are encrypted; empty: they are not.
func (p *destinationPlan) sealing(t schema.GroupVersionResource) string {
	if t.GroupResource() != secretsResource {
		return ""
	}
	return p.secrets.sealing
}

// outdated says that the destination would write a change in another way by now: for other
// recipients, or encrypted. It must not reach Git any more, whatever plan the worker goes
// by. The comparison that the change of plan asks for makes up for it.
func (d *destination) outdated(change Change) bool {
	return change.Operation != v1alpha1.OperationDelete && change.Sealing != d.plan.Load().sealing(change.Object.resource())
}

// locked says that files of Secrets stay as they are, because Secrets are to be encrypted
// and cannot be.
func (p *destinationPlan) locked(o Object) bool {
	return o.resource().GroupResource() == secretsResource && p.object.Spec.Secrets == v1alpha1.SecretsEncrypt && p.secrets.sealer == nil
}
