// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/store/table"
)

// Resource is the resource of Changes.
var Resource = v1alpha1.Resource("changes")

// NewRESTOptionsGetter wraps a getter so that lists of Changes are in the order of time, and those with a selector use the index. changes and
// rows are the tables of Config.
func NewRESTOptionsGetter(delegate generic.RESTOptionsGetter, changes, rows *table.Table) generic.RESTOptionsGetter {
	return restOptionsGetter{delegate, changes, rows}
}

type restOptionsGetter struct {
	generic.RESTOptionsGetter
	changes, rows *table.Table
}

// GetRESTOptions implements generic.RESTOptionsGetter.
func (g restOptionsGetter) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil || resource != Resource {
		return options, err
	}
	decorate := options.Decorator
	options.Decorator = func(
		config *storagebackend.ConfigForResource, resourcePrefix string, keyFunc func(runtime.Object) (string, error),
		newFunc, newListFunc func() runtime.Object, getAttrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		store, destroy, err := decorate(config, resourcePrefix, keyFunc, newFunc, newListFunc, getAttrs, triggers, indexers)
		return &orderedStorage{
			Interface: store, merger: &merger{changes: g.changes}, rows: g.rows, prefix: resourcePrefix + "/", newObject: newFunc,
		}, destroy, err
	}
	return options, nil
}

// orderedStorage is a storage of Changes whose lists are in the order of time.
type orderedStorage struct {
	storage.Interface
	merger *merger
	rows   *table.Table
	// prefix is that of the keys of all Changes.
	prefix    string
	newObject func() runtime.Object
}

// GetList implements storage.Interface. It reads lists with a selector by the index, and pages by their keys. Upstream's storage reads whole
// lists, which are put in order then, and lists of a past resourceVersion, which are in the order of keys.
func (s *orderedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, into runtime.Object) error {
	from, own, err := continued(opts.Predicate.Continue)
	if err != nil {
		return err
	}
	list, ok := into.(*configbutler.ChangeList)
	if !ok {
		return wrapped(fmt.Errorf("the list is a %T", into))
	}
	if !opts.Recursive || !own || isExact(opts) {
		return s.Interface.GetList(ctx, key, opts, list)
	}
	namespace := strings.Trim(strings.TrimPrefix(key, strings.TrimSuffix(s.prefix, "/")), "/")
	selected, limit := selectedBy(opts.Predicate.Field), int(min(max(opts.Predicate.Limit, 0), math.MaxInt32))
	switch {
	case len(selected) > 0:
		return s.list(ctx, opts, list, from.revision, s.indexed(ctx, namespace, from.after, limit, selected))
	case limit > 0 || opts.Predicate.Continue != "":
		return s.list(ctx, opts, list, from.revision, s.merger.positions(ctx, namespace, from.after, limit))
	default:
		err := s.Interface.GetList(ctx, key, opts, list)
		slices.SortFunc(list.Items, func(a, b configbutler.Change) int { return positionOf(&a).compare(positionOf(&b)) })
		return err
	}
}

func positionOf(change *configbutler.Change) position { return position{change.Name, change.Namespace} }

// isExact reports whether a list is to be of exactly its resourceVersion. With a limit that is the default.
func isExact(opts storage.ListOptions) bool {
	if opts.ResourceVersionMatch == "" {
		return opts.Predicate.Limit > 0 && opts.ResourceVersion != "" && opts.ResourceVersion != "0"
	}
	return opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
}

// leastAgain is the least number of positions for which the index is read again.
const leastAgain = 512

// indexed visits the positions after another one, in order, of the Changes whose entries are selected: of a namespace, or of all if it is
// empty. The index is read once for an expected number, 0 if that is unknown, and again for twice as many if the user may not see
// enough of them.
func (s *orderedStorage) indexed(
	ctx context.Context, namespace string, after position, expected int, selected []func(*entry) bool,
) iter.Seq2[position, error] {
	if namespace != "" {
		selected = append(selected, func(e *entry) bool { return e.namespace == namespace })
	}
	matches := func(e *entry) bool {
		return !slices.ContainsFunc(selected, func(matches func(*entry) bool) bool { return !matches(e) })
	}
	part := page{after: after}
	if expected > 0 {
		part.most = expected + 1 // The last one shows that there is a further page.
	}
	return func(yield func(position, error) bool) {
		for {
			found, more, err := find(ctx, s.rows, part, matches)
			if err != nil {
				yield(position{}, err)
				return
			}
			for _, at := range found {
				if !yield(at, nil) {
					return
				}
			}
			if !more {
				return
			}
			part.after, part.most = found[len(found)-1], max(2*part.most, leastAgain)
		}
	}
}

// selectedBy returns functions that report whether an entry may match a selector. There are none if the index does not have its fields.
func selectedBy(selector fields.Selector) (selected []func(*entry) bool) {
	if selector == nil {
		return nil
	}
	for field, hash := range map[string]func(*entry) uint32{
		v1alpha1.ChangeObjectNameField:     func(e *entry) uint32 { return e.object },
		v1alpha1.ChangeObjectResourceField: func(e *entry) uint32 { return e.resource },
		v1alpha1.ChangeObjectKindField:     func(e *entry) uint32 { return e.kind },
		v1alpha1.ChangeAuthorField:         func(e *entry) uint32 { return e.author },
	} {
		if value, found := selector.RequiresExactMatch(field); found {
			want := hashText(value)
			selected = append(selected, func(e *entry) bool { return hash(e) == want })
		}
	}
	if value, found := selector.RequiresExactMatch(v1alpha1.ChangeOperationField); found && value != "" {
		selected = append(selected, func(e *entry) bool { return e.operation == value[0] })
	}
	if value, found := selector.RequiresExactMatch(v1alpha1.ChangeBypassField); found {
		selected = append(selected, func(e *entry) bool { return strconv.FormatBool(e.bypass) == value })
	}
	if value, found := selector.RequiresExactMatch(v1alpha1.ChangeCommitField); found && len(value) >= minCommit {
		selected = append(selected, commitMatcher(value))
	}
	return selected
}

// minCommit is the minimum length of an abbreviated commit: that of Git, and of the column COMMIT.
const minCommit = 7

// list reads the Changes at some positions until a page is full. As with upstream's lists, the token is where the next page begins: after the
// last Change of this one. Pages are not read at one revision: Changes are added at the beginning and expire at the end. They all have the
// resourceVersion of the first page, which is first, 0 for the first page itself: a watch from it has all events since then.
func (s *orderedStorage) list(
	ctx context.Context, opts storage.ListOptions, list *configbutler.ChangeList, first uint64,
	positions iter.Seq2[position, error],
) error {
	revision, err := s.revision(ctx, opts, first)
	if err != nil {
		return err
	}
	token := ""
	list.Items = []configbutler.Change{} // nil would be null in JSON.
	for at, err := range positions {
		if err != nil {
			return wrapped(err)
		}
		if full := opts.Predicate.Limit > 0 && int64(len(list.Items)) >= opts.Predicate.Limit; full {
			if token, err = positionOf(&list.Items[len(list.Items)-1]).token(revision); err != nil {
				return wrapped(err)
			}
			break
		}
		change, err := s.read(ctx, at, opts.Predicate)
		if err != nil {
			return err
		}
		if change != nil {
			list.Items = append(list.Items, *change)
		}
	}
	return wrapped(storage.APIObjectVersioner{}.UpdateList(list, revision, token, nil))
}

// revision returns the resourceVersion of a page: the current one, or that of the first page, if it is not 0. It returns an error
// if that of a list is not reached yet.
func (s *orderedStorage) revision(ctx context.Context, opts storage.ListOptions, first uint64) (uint64, error) {
	current, err := s.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, wrapped(err)
	}
	least, err := storage.APIObjectVersioner{}.ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", err))
	}
	if least = max(least, first); least > current {
		return 0, storage.NewTooLargeResourceVersionError(least, current, 0)
	}
	return cmp.Or(first, current), nil
}

// read returns a Change, nil if it was deleted or is not selected.
func (s *orderedStorage) read(ctx context.Context, at position, predicate storage.SelectionPredicate) (*configbutler.Change, error) {
	object := s.newObject()
	err := s.Get(ctx, s.prefix+at.key(), storage.GetOptions{}, object)
	if storage.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wrapped(err)
	}
	change, ok := object.(*configbutler.Change)
	if !ok {
		return nil, wrapped(fmt.Errorf("the storage returned a %T", object))
	}
	predicate.Field = withoutCommit(predicate.Field, change)
	if matches, err := predicate.Matches(object); err != nil || !matches {
		return nil, wrapped(err)
	}
	return change, nil
}

// withoutCommit returns a selector without the required commit, if the change has a commit that begins with it: a Change may have several
// commits, and the commit may be abbreviated.
func withoutCommit(selector fields.Selector, change *configbutler.Change) fields.Selector {
	wanted, found := selector.RequiresExactMatch(v1alpha1.ChangeCommitField)
	has := func(commit configbutler.ChangeCommit) bool { return strings.HasPrefix(commit.SHA, wanted) }
	if !found || len(wanted) < minCommit || !slices.ContainsFunc(change.Spec.Commits, has) {
		return selector
	}
	var others []fields.Selector
	for _, term := range selector.Requirements() {
		switch {
		case term.Operator == selection.NotEquals:
			others = append(others, fields.OneTermNotEqualSelector(term.Field, term.Value))
		case term.Field != v1alpha1.ChangeCommitField:
			others = append(others, fields.OneTermEqualSelector(term.Field, term.Value))
		}
	}
	return fields.AndSelectors(others...)
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("list Changes: %w", err)
}
