// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// consent holds the Secrets whose copies the catalog's editor consents to: those to which the catalog's workloads lead without the
// environment's patches. A nil consent excludes nothing.
type consent struct {
	secrets sets.Set[Key]
	// accounts are the ServiceAccounts through which the workloads can lead to Secrets.
	accounts sets.Set[Key]
	// denial is the reason for not copying other Secrets.
	denial Denial
}

// excludes reports whether an object is a Secret that the consent does not cover.
func (c *consent) excludes(key Key) bool {
	return c != nil && key.GroupKind == secrets && !c.secrets.Has(key)
}

// consentOf returns the consent that limits a plan, nil if none does. A refresh follows the index, which can have Secrets to which the
// catalog's workloads no longer refer. Other plans follow the workloads, so they need no further limit if the consent covers these. A
// snapshot takes nothing from the source.
func (p Planner) consentOf(in *Input) (*consent, error) {
	if !in.SecretsByConsent || in.hasSnapshot() || in.Action != v1alpha1.SyncActionCluster && in.Consented == nil {
		return nil, nil
	}
	unpatched := in.unpatched()
	c, err := p.collect(&unpatched)
	if err != nil {
		return nil, err
	}
	found := &consent{secrets: sets.New[Key](), accounts: sets.New[Key](), denial: in.unsharedDenial()}
	for _, ref := range c.selection.refs {
		switch ref.Type {
		case references.Secret:
			found.secrets.Insert(keyOf(ref.Target))
		case references.ServiceAccount:
			found.accounts.Insert(keyOf(ref.Target))
		}
	}
	return found, nil
}

// unpatched returns the input of a sync of all workloads of the catalog into a new environment without patches and spec.include.
func (s *Input) unpatched() Input {
	of := *s
	of.Environment = s.Environment.DeepCopy()
	spec := &of.Environment.Spec
	spec.Type, spec.Patches, spec.Include = v1alpha1.EnvironmentShared, nil, nil
	of.Action, of.Only, of.SecretsByConsent = v1alpha1.SyncActionAll, nil, false
	of.Live, of.Base, of.Index, of.CopyCache = nil, nil, nil, nil
	if s.Consented != nil {
		of.Workloads = s.Consented
	}
	return of
}

// unsharedDenial returns the reason for not copying Secrets that the consent does not cover.
func (s *Input) unsharedDenial() Denial {
	why := Denial{Reason: v1alpha1.ReasonPermissionLost, Message: "the catalog does not share it: what it last took from its source does not refer to it"}
	if s.Unshared.Reason != "" {
		why.Reason = s.Unshared.Reason
		why.Message += ", and " + s.Unshared.Message
	}
	return why
}
