// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// errPredecessor is returned for the values of a Secret that may be of a deleted namespace, which the caller may not read.
var errPredecessor = errors.New("the Secret may be of a deleted namespace with the name of this one")

// predecessors recognizes Secrets of deleted namespaces. A right in a namespace covers the Secrets of the namespace that exists now, not
// those of an earlier one with its name, which may have had another owner. So the values of these need the right in the whole cluster.
//
// A file is of the existing namespace if it was committed after the creation of that namespace. It was committed before if the commit that
// is read is older, or if the newest older commit has the same file: a branch may keep files for long that are written no more, for example
// those of a suspended destination. A commit is older if its change was seen before the creation, which is its author time, even if the
// remote could be reached only later.
//
// Others may push commits with any times, and the server decrypts files that it has written a long time ago. The Changes are the server's
// own record: a file that it wrote before the creation, and not since, is of an earlier namespace, whatever the branch says. A file that is
// in no Change must have the bytes that the server writes, or else one with an added comment would be another. Changes are not kept forever,
// so without one the branch decides, and a file that is pushed again under a new date is shown. Times that are too early can hide values
// that the caller may see.
type predecessors struct {
	past   *Past
	source *mirror.Source
	state  state
	reader *access.Reader
	opener *opener
	// name is the name of the selected Secret; empty for all.
	name string

	// origins has the namespaces that were looked up.
	origins map[string]*origin
}

// origin says which files of a state may be older than a namespace.
type origin struct {
	// all is set if all may be.
	all bool
	// created is when the namespace was created.
	created time.Time
	// earlier are contents that the server wrote or replaced before the creation, and since those that it has written after it.
	earlier, since sets.Set[string]
	// compared is set if before has the files of the newest commit from before the creation; nil if there is no such commit.
	compared bool
	before   *gitrepo.Tree
}

// check returns errPredecessor for the Secret of a candidate if it may be of a deleted namespace, unless the caller may get Secrets in the
// whole cluster.
func (p *predecessors) check(ctx context.Context, c *candidate, secret *unstructured.Unstructured) error {
	switch all, err := p.reader.May(ctx, "get", secrets, "", ""); {
	case err != nil:
		return apierrors.NewInternalError(err)
	case all:
		return nil
	}
	of, found := p.origins[c.folder.Namespace]
	if !found {
		var err error
		if of, err = p.originOf(ctx, c.folder.Namespace); err != nil {
			return err
		}
		p.origins[c.folder.Namespace] = of
	}
	switch earlier, err := p.isEarlier(ctx, of, c, secret); {
	case err != nil:
		return err
	case earlier:
		return errPredecessor
	}
	return nil
}

// isEarlier reports whether the file of a candidate may be of an earlier namespace. The history of the branch is read last: it can be long.
func (p *predecessors) isEarlier(ctx context.Context, of *origin, c *candidate, secret *unstructured.Unstructured) (bool, error) {
	hash := c.hash.String()
	switch {
	case of.all:
		return true, nil
	case of.since.Has(hash):
		return false, nil
	case of.earlier.Has(hash), p.opener.altered(ctx, c.hash, secret):
		return true, nil
	}
	if !of.compared {
		if err := p.addHistory(ctx, of); err != nil {
			return false, err
		}
		of.compared = true
	}
	if of.all || of.before == nil {
		return of.all, nil
	}
	kept, found := of.before.Lookup(c.path)
	return found && kept == c.hash, nil
}

// originOf reads a namespace from the cluster: a cache may still have the deleted one.
func (p *predecessors) originOf(ctx context.Context, namespace string) (*origin, error) {
	found, err := p.past.config.Cluster.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &origin{all: true}, nil
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("read the namespace %s: %w", namespace, err))
	case isOlder(p.state.commit, found.CreationTimestamp.Time):
		return &origin{all: true}, nil
	}
	of := &origin{created: found.CreationTimestamp.Time, earlier: sets.New[string](), since: sets.New[string]()}
	return of, p.addChanges(ctx, of, namespace)
}

// addHistory sets what the branch says about a namespace that was created before the commit that is read.
func (p *predecessors) addHistory(ctx context.Context, of *origin) error {
	history, err := p.past.history(ctx, p.source)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(history, func(c gitrepo.PastCommit) bool { return c.Hash == p.state.commit.Hash })
	if at < 0 { // The branch was rewritten since the commit was found.
		of.all = true
		return nil
	}
	for i := at - 1; i >= 0; i-- {
		if isOlder(history[i], of.created) {
			older, err := p.past.read(ctx, p.source, history[i].Hash, len(history)-1-i)
			of.before = older.tree
			return err
		}
	}
	return nil
}

// changesPage is how many Changes are read at a time.
const changesPage = 500

// addChanges adds the contents of Secrets in the Changes of a namespace.
func (p *predecessors) addChanges(ctx context.Context, of *origin, namespace string) error {
	selector := fields.Set{v1alpha1.ChangeObjectResourceField: secrets.Resource}
	if p.name != "" {
		selector[v1alpha1.ChangeObjectNameField] = p.name
	}
	options := metav1.ListOptions{FieldSelector: selector.String(), Limit: changesPage}
	for {
		list, err := p.past.config.Client.ConfigbutlerV1alpha1().Changes(namespace).List(ctx, options)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("read the Changes of the namespace %s: %w", namespace, err))
		}
		for i := range list.Items {
			of.add(&list.Items[i].Spec)
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// add adds the contents of a Change. What a later one has replaced may have been pushed by others, so it says nothing.
func (o *origin) add(change *v1alpha1.ChangeSpec) {
	for _, commit := range change.Commits {
		if change.Time.Time.Before(o.created) {
			o.earlier.Insert(commit.BlobBefore, commit.BlobAfter)
		} else {
			o.since.Insert(commit.BlobAfter)
		}
	}
}

// isOlder reports whether a commit may be of changes from before a time.
func isOlder(commit gitrepo.PastCommit, than time.Time) bool {
	return commit.Time.Before(than) || commit.Authored.Before(than)
}

// predecessorError returns the error for the caller who wants the values of a Secret that may be of a deleted namespace.
func predecessorError(secret *unstructured.Unstructured, user string) error {
	return apierrors.NewForbidden(secrets, secret.GetName(), access.Refusal(user, []access.Permission{{
		Verbs: []string{"get"}, Group: secrets.Group, Resources: []string{secrets.Resource},
		Cause: fmt.Sprintf("which the values of a Secret from before the creation of the namespace %s need, because it may be of another "+
			"namespace with that name", secret.GetNamespace()),
		Remedy: "or ask for secrets=Masked",
	}}))
}
