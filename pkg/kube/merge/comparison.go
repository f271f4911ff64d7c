// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/configbutler/slipstream/pkg/kube/diff"
	kubefieldpath "github.com/configbutler/slipstream/pkg/kube/fieldpath"
)

// errShape does not wrap the library's errors, which quote values that may be secret.
var errShape = errors.New("its versions are not of the shape of its type")

// comparison holds the differences between the versions of an object.
type comparison struct {
	manager string
	owners  diff.Managers

	live, desired *typed.TypedValue
	// liveFields and desiredFields are the leaves of live and desired. withParents has also the fields that contain those of desired.
	liveFields, desiredFields, withParents *fieldpath.Set
	// drift compares Base with Live, intent Base with Desired, pending Live with Desired, and patched Unpatched with
	// Desired.
	drift, intent, pending, patched *typed.Comparison
}

func (m Merger) compare(ctx context.Context, v Versions) (*comparison, error) {
	c := &comparison{manager: m.Manager, owners: diff.ManagersOf(v.Live)}
	if v.Base == nil {
		base, err := m.owned(ctx, v.Live, c.owners)
		if err != nil {
			return nil, err
		}
		v.Base = base
	}
	if v.Unpatched == nil {
		v.Unpatched = v.Desired
	}
	all, err := m.Schemas.Typed(ctx, v.Base, v.Live, v.Desired, v.Unpatched)
	if err != nil {
		return nil, err
	}
	base, live, desired, unpatched := all[0], all[1], all[2], all[3]
	c.live, c.desired = live, desired
	var errs [6]error
	c.drift, errs[0] = base.Compare(live)
	c.intent, errs[1] = base.Compare(desired)
	c.pending, errs[2] = live.Compare(desired)
	c.patched, errs[3] = unpatched.Compare(desired)
	c.liveFields, errs[4] = live.ToFieldSet()
	c.desiredFields, errs[5] = desired.ToFieldSet()
	if errors.Join(errs[:]...) != nil {
		return nil, errShape
	}
	c.withParents = c.desiredFields
	c.liveFields, c.desiredFields = c.liveFields.Leaves(), c.desiredFields.Leaves()
	return c, nil
}

// owned returns a copy of an object reduced to the fields that our manager owns.
func (m Merger) owned(ctx context.Context, live *unstructured.Unstructured, owners diff.Managers) (*unstructured.Unstructured, error) {
	all, err := m.Schemas.Typed(ctx, live)
	if err != nil {
		return nil, err
	}
	fields := owners.Fields(m.Manager).Leaves()
	content, _ := all[0].ExtractItems(fields, typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	out := (&unstructured.Unstructured{Object: content}).DeepCopy()
	if out.Object == nil {
		out.Object = map[string]any{}
	}
	out.SetGroupVersionKind(live.GroupVersionKind())
	return out, nil
}

// others returns the managers other than ours that own a field or a part of it.
func (c *comparison) others(p fieldpath.Path) []string {
	return slices.DeleteFunc(c.owners.Of(p), func(name string) bool { return name == c.manager })
}

func (c *comparison) isOurs(p fieldpath.Path) bool { return slices.Contains(c.owners.Of(p), c.manager) }

func (c *comparison) field(p fieldpath.Path) Field {
	return Field{Path: kubefieldpath.Of(p), Managers: c.others(p)}
}

// touched returns the fields that applying a desired version can change: those that differ from the live one, and the owned ones that it does
// not have, which server-side apply removes. desired has the fields of that version, and those that contain them.
func touched(pending *typed.Comparison, owned, desired *fieldpath.Set) *fieldpath.Set {
	return pending.Added.Union(pending.Modified).Union(owned.Difference(desired)).Leaves()
}
