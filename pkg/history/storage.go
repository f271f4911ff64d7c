// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
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

// NewRESTOptionsGetter wraps a getter so that lists of Changes with a selector use the index in the table rows.
func NewRESTOptionsGetter(delegate generic.RESTOptionsGetter, rows *table.Table) generic.RESTOptionsGetter {
	return restOptionsGetter{delegate, rows}
}

type restOptionsGetter struct {
	generic.RESTOptionsGetter
	rows *table.Table
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
		return &indexedStorage{Interface: store, rows: g.rows, prefix: resourcePrefix + "/", newObject: newFunc}, destroy, err
	}
	return options, nil
}

// indexedStorage is a storage of Changes that reads lists with a selector by the index.
type indexedStorage struct {
	storage.Interface
	rows *table.Table
	// prefix is that of the keys of all Changes.
	prefix    string
	newObject func() runtime.Object
}

// GetList implements storage.Interface.
func (s *indexedStorage) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	selected := selectedBy(opts.Predicate.Field)
	start, own, err := startOf(opts.Predicate.Continue)
	if err != nil {
		return err
	}
	exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact
	if !opts.Recursive || len(selected) == 0 || exact || opts.Predicate.Continue != "" && !own {
		return s.Interface.GetList(ctx, key, opts, list)
	}
	if namespace := strings.Trim(strings.TrimPrefix(key, strings.TrimSuffix(s.prefix, "/")), "/"); namespace != "" {
		selected = append(selected, func(e *entry) bool { return e.namespace == namespace })
	}
	return s.list(ctx, opts, list, start, func(e *entry) bool {
		return !slices.ContainsFunc(selected, func(matches func(*entry) bool) bool { return !matches(e) })
	})
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

// list reads a page of the Changes whose entries match, from a key on. As with upstream's lists, the token is where the next page begins:
// after the last Change of this one. Pages are not of one resourceVersion: Changes are added at the beginning of a namespace and expire at
// its end.
func (s *indexedStorage) list(
	ctx context.Context, opts storage.ListOptions, list runtime.Object, start string, matches func(*entry) bool,
) error {
	revision, err := s.GetCurrentResourceVersion(ctx)
	if err != nil {
		return wrapped(err)
	}
	items, err := itemsOf(list)
	if err != nil {
		return err
	}
	limit := int(min(max(opts.Predicate.Limit, 0), math.MaxInt32))
	keys, more, err := find(ctx, s.rows, page{from: start, most: limit}, matches)
	if err != nil {
		return wrapped(err)
	}
	for _, key := range keys {
		object, err := s.read(ctx, key, opts.Predicate)
		if err != nil {
			return err
		}
		if object != nil {
			items.Set(reflect.Append(items, reflect.ValueOf(object).Elem()))
		}
	}
	token := ""
	if more {
		if token, err = storage.EncodeContinue(ownToken+keys[len(keys)-1], "/", int64(min(revision, math.MaxInt64))); err != nil {
			return wrapped(err)
		}
	}
	return wrapped(storage.APIObjectVersioner{}.UpdateList(list, revision, token, nil))
}

// ownToken begins the keys in the tokens of lists by the index. Namespaces do not begin with it.
const ownToken = "/~"

// startOf returns the key at which a page begins. own is false for a token of a list without the index.
func startOf(token string) (start string, own bool, err error) {
	if token == "" {
		return "", true, nil
	}
	key, _, err := storage.DecodeContinue(token, "/")
	if err != nil {
		return "", false, apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
	}
	last, own := strings.CutPrefix(key, ownToken)
	return last + "\x00", own, nil
}

// read returns a Change, nil if it was deleted or is not selected.
func (s *indexedStorage) read(ctx context.Context, key string, predicate storage.SelectionPredicate) (runtime.Object, error) {
	object := s.newObject()
	err := s.Get(ctx, s.prefix+key, storage.GetOptions{}, object)
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
	return object, nil
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

// itemsOf returns the items of a list.
func itemsOf(list runtime.Object) (reflect.Value, error) {
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, fmt.Errorf("read the items of a list: %w", err)
	}
	return reflect.ValueOf(pointer).Elem(), nil
}

func wrapped(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("list Changes: %w", err)
}
