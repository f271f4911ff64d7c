// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/merge"
	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
	"github.com/configbutler/slipstream/pkg/kube/references"
)

// Planner makes plans.
type Planner struct {
	Schemas *diff.Schemas
	// Hasher makes the hashes of what the index names.
	Hasher Hasher
	// Marks are the labels and annotations of other tools that copies never have.
	Marks objectcopy.Marks
}

// Plan returns what a sync does in a situation. It fails when patches of the environment do not fit what they are for, or an
// object is not of the shape of its type: then nothing is to be done at all.
func (p Planner) Plan(ctx context.Context, s Situation) (*Plan, error) {
	d, err := p.draft(&s)
	if err != nil {
		return nil, err
	}
	if err := d.steps(ctx); err != nil {
		return nil, err
	}
	if s.Action != v1alpha1.SyncActionCluster {
		d.removals()
	}
	slices.SortFunc(d.plan.Steps, inOrder)
	d.plan.Reported = append(d.plan.Reported, sets.List(d.copies.problems)...)
	if d.plan.News, err = d.news(); err != nil {
		return nil, err
	}
	d.plan.Index, err = d.index()
	d.hide()
	return d.plan, err
}

// news is Plan.News.
func (d *draft) news() (string, error) {
	var lines []string
	for i := range d.plan.Steps {
		s := &d.plan.Steps[i]
		if s.Action != v1alpha1.SyncActionCatalog || s.ChangeType() == "" || s.isWorkload() || !d.isNews(s) {
			continue
		}
		hash := ""
		if s.Desired != nil {
			var err error
			if hash, err = Hash(d.hasher, s.Desired); err != nil {
				return "", err
			}
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", s.Verb, s.Key, hash))
	}
	if len(lines) == 0 {
		return "", nil
	}
	return d.hasher.Sum("news", []byte(strings.Join(lines, "\n"))), nil
}

// isNews says whether an object is wanted otherwise than it was last.
func (d *draft) isNews(s *Step) bool {
	base := d.Base[s.Key]
	if s.Desired == nil || base == nil {
		return s.Desired != base
	}
	before, after := base.DeepCopy(), s.Desired.DeepCopy()
	for _, object := range []*unstructured.Unstructured{before, after} {
		unstructured.RemoveNestedField(object.Object, "metadata", "labels", v1alpha1.LabelRevision)
	}
	return !reflect.DeepEqual(before.Object, after.Object)
}

// draft begins a plan with what is wanted.
func (p Planner) draft(s *Situation) (*draft, error) {
	copies, err := s.newCopier(p.Marks.And(s.Marks))
	if err != nil {
		return nil, err
	}
	d := &draft{
		Situation: s, copies: copies, merger: merge.Merger{Schemas: p.Schemas, Manager: v1alpha1.FieldManager}, hasher: p.Hasher,
		source: byKey(s.Source), made: byKey(s.origin()), live: byKey(s.Live), before: byKey(s.Before), wanted: map[Key]*wanted{}, why: map[Key]string{},
		required: sets.New[references.Target](), absent: sets.New[Key](), plan: &Plan{},
	}
	if s.Action == v1alpha1.SyncActionCluster {
		return d, d.refresh()
	}
	return d, d.discover()
}

// draft is a plan in the making.
type draft struct {
	*Situation
	copies *copier
	merger merge.Merger
	hasher Hasher

	source, live, before map[Key]*unstructured.Unstructured
	// made are what wanted objects are made of, but for workloads of the catalog.
	made map[Key]*unstructured.Unstructured
	// wanted are the objects that are to be in the target, and why they are.
	wanted map[Key]*wanted
	why    map[Key]string
	// undeclared are the workloads without what the environment declares, and required are what more refers to than its patches.
	undeclared []*unstructured.Unstructured
	required   sets.Set[references.Target]
	// absent are referred to, and the source does not have them.
	absent sets.Set[Key]
	// found are all references, by what they lead to.
	found []references.Reference
	plan  *Plan
}

// want takes an object in, if it has a copy.
func (d *draft) want(object *unstructured.Unstructured, why string) (*wanted, error) {
	key := KeyOf(object)
	if w, ok := d.wanted[key]; ok {
		return w, nil
	}
	w, omitted, err := d.copyOf(object)
	if err != nil {
		return nil, err
	}
	if w != nil {
		d.wanted[key], d.why[key] = w, why
	} else if key != account {
		d.report(fmt.Sprintf("%s is not copied: %s", key, omitted))
	}
	return w, nil
}

// report takes down what is not done, once.
func (d *draft) report(sentence string) {
	if !slices.Contains(d.plan.Reported, sentence) {
		d.plan.Reported = append(d.plan.Reported, sentence)
	}
}

// isNamed says whether a workload is to be synced.
func (d *draft) isNamed(key Key) bool {
	return len(d.Only) == 0 || slices.Contains(d.Only, key.workload())
}

// isOffered says whether a workload of the catalog is one of the environment's, or of a Branch that has taken it out of it.
func (d *draft) isOffered(key Key) bool {
	return !d.isBranch() || slices.Contains(d.Environment.Spec.BranchWorkloads, key.workload())
}
