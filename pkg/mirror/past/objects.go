// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

const (
	// maxResponse bounds the objects of a response, in bytes of JSON, unless a single one is larger.
	maxResponse = 8 << 20
	// maxScanned bounds the contents that are read for a response, in bytes. Those that a label selector does not match count.
	maxScanned = 64 << 20
	// maxReviews bounds the reviews of permissions for a response.
	maxReviews = 500
	// maxAtOnce is how many files are fetched at a time.
	maxAtOnce = 500
	// maxUnreadable is how many unreadable files a response names.
	maxUnreadable = 20
)

// Objects returns objects of a destination as they were, as far as the reader may read them. options.At is not a Change.
func (p *Past) Objects(
	ctx context.Context, destination *v1alpha1.GitDestination, options *v1alpha1.ManifestOptions, reader *access.Reader,
) (list *v1alpha1.ManifestList, err error) {
	selected, err := parseSelection(options, p.config.Clock.Now())
	if err != nil {
		return nil, err
	}
	if err := selected.check(ctx, reader); err != nil {
		return nil, err
	}
	err = p.run(ctx, destination.Namespace, func(ctx context.Context) error {
		list, err = p.objects(ctx, destination, selected, reader)
		return failure(ctx, destination, err)
	})
	return list, err
}

func (p *Past) objects(
	ctx context.Context, destination *v1alpha1.GitDestination, selected selection, reader *access.Reader,
) (*v1alpha1.ManifestList, error) {
	source, err := p.open(ctx, destination)
	if err != nil {
		return nil, err
	}
	defer source.Remote.Close()
	at, err := p.ownedState(ctx, source, &selected)
	if errors.Is(err, errNotOwned) {
		return nil, apierrors.NewConflict(v1alpha1.Resource("gitdestinations"), destination.Name, err)
	}
	if err != nil {
		return nil, err
	}
	l := &listing{past: p, source: source, selected: selected, reader: reader, state: at, list: &v1alpha1.ManifestList{
		Ignore: destination.Spec.Ignore, Items: []runtime.RawExtension{},
	}}
	if at.commit.Hash.IsZero() {
		return l.list, nil
	}
	l.list.Commit = &v1alpha1.ManifestCommit{SHA: at.commit.Hash.String(), Time: metav1.NewTime(at.commit.Time)}
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	return l.list, nil
}

// ownedState returns the state that a selection is of. It returns errNotOwned unless the destination owns its folder now. It must have
// owned it then, too.
func (p *Past) ownedState(ctx context.Context, source *mirror.Source, selected *selection) (state, error) {
	if !source.Written {
		tip, err := p.ownedTip(ctx, source)
		if err == nil && tip.commit.Hash.IsZero() {
			err = errNotOwned
		}
		if err != nil {
			return state{}, err
		}
	}
	return p.stateOf(ctx, source, selected)
}

// listing is the response to a request while it is made.
type listing struct {
	past     *Past
	source   *mirror.Source
	selected selection
	reader   *access.Reader
	state    state
	opener   opener
	// predecessors limits the values that the opener may show.
	predecessors predecessors

	list *v1alpha1.ManifestList
	// at is the path of the last file that the response is about, below the base folder. The caller may read its type.
	at string
	// bytes is the size of the items, scanned that of the files that were read.
	bytes, scanned int
}

// candidate is a file that may be a selected object which the caller may read.
type candidate struct {
	// path is relative to the repository, below to the base folder.
	path, below string
	folder      manifest.Folder
	hash        gitrepo.Hash
}

// read fills the list.
func (l *listing) read(ctx context.Context) error {
	l.at, l.opener = l.selected.page.After, opener{past: l.past, decrypted: l.selected.decrypted}
	l.predecessors = predecessors{
		past: l.past, source: l.source, state: l.state, reader: l.reader, opener: &l.opener, name: l.selected.name,
		origins: map[string]*origin{},
	}
	for most := maxAtOnce; ; {
		found, end, err := l.candidates(ctx, l.wanted(most))
		if err != nil {
			return err
		}
		hashes, isSecret := hashesOf(found)
		contents, err := l.past.contents(ctx, l.source, l.where(), hashes, isSecret)
		if err != nil {
			return err
		}
		complete, err := l.addAll(ctx, found, contents)
		if err != nil {
			return err
		}
		if !complete && !l.full() { // The files are large.
			most = max(1, len(found)/2)
			continue
		}
		switch {
		case end.tired && l.at == l.selected.page.After: // A token would have a name that the caller may not know.
			return apierrors.NewBadRequest(
				"namespace: too many types and namespaces follow of which you may read none; name a namespace or a type")
		case l.full(), end.reached, end.tired:
			return l.finish(ctx, complete && end.reached)
		}
	}
}

// wanted returns how many files to fetch next, at most a given number. A label selector may leave few of them.
func (l *listing) wanted(most int) int {
	if !l.selected.labels.Empty() {
		return most
	}
	return min(most, l.selected.limit-len(l.list.Items))
}

// where says where the files are.
func (l *listing) where() gitrepo.BlobsOptions {
	return gitrepo.BlobsOptions{Past: gitrepo.Past{Branch: l.source.Branch, Commit: l.state.commit.Hash, Behind: l.state.behind}}
}

// end is where candidates has stopped.
type end struct {
	// reached is set if there are no more files, tired if too many permissions were reviewed.
	reached, tired bool
}

// errEnough ends a walk.
var errEnough = errors.New("enough files")

// candidates returns the next candidates, and why it has stopped.
func (l *listing) candidates(ctx context.Context, most int) (found []candidate, at end, err error) {
	err = l.walk(ctx, func(c candidate) error {
		if c.below <= l.at {
			return nil
		}
		if len(found) == most {
			return errEnough
		}
		allowed, err := l.selected.mayRead(ctx, l.reader, c.folder)
		switch {
		case err != nil:
			return apierrors.NewInternalError(err)
		case allowed:
			found = append(found, c)
		case l.reader.Reviews() >= maxReviews:
			at.tired = true
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return found, at, nil
	}
	at.reached = true
	return found, at, err
}

// walk calls visit for the files that are selected by their paths, whether or not the caller may read them, in the order of the paths.
func (l *listing) walk(ctx context.Context, visit func(candidate) error) error {
	name, err := l.selected.fileName()
	if l.selected.name != "" && err != nil {
		return err
	}
	base := l.source.Folder
	return l.state.tree.Walk(manifest.Join(base, l.selected.groupFolder()), func(file string, hash gitrepo.Hash) error {
		below := strings.TrimPrefix(strings.TrimPrefix(file, base), "/")
		of, managed := manifest.ManagedPath(below)
		if !managed || !l.selected.selects(of, path.Base(below), name) {
			return ctx.Err()
		}
		if err := visit(candidate{path: file, below: below, folder: of, hash: hash}); err != nil {
			return err
		}
		return ctx.Err()
	})
}

// hashesOf returns the hashes of candidates, and whether each is that of a Secret.
func hashesOf(found []candidate) (hashes []gitrepo.Hash, isSecret func(gitrepo.Hash) bool) {
	ofSecrets := map[gitrepo.Hash]bool{}
	for i := range found {
		hashes = append(hashes, found[i].hash)
		if found[i].isSecret() {
			ofSecrets[found[i].hash] = true
		}
	}
	return hashes, func(hash gitrepo.Hash) bool { return ofSecrets[hash] }
}

// isSecret reports whether the file is that of a Secret.
func (c *candidate) isSecret() bool {
	return c.folder.GroupVersionResource().GroupResource() == secrets
}

// addAll adds the objects of candidates, in order, until the response is full or a content is missing that another call returns. It
// reports whether it has added all.
func (l *listing) addAll(ctx context.Context, found []candidate, contents gitrepo.Blobs) (complete bool, err error) {
	for i := range found {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		content, read := contents.Found[found[i].hash]
		if !read && contents.More || l.full() {
			return false, nil
		}
		if err := l.add(ctx, &found[i], content, read); err != nil {
			return false, err
		}
		l.at = found[i].below
	}
	return true, nil
}

// add adds the object of a candidate, if it is selected.
func (l *listing) add(ctx context.Context, c *candidate, content []byte, read bool) error {
	l.scanned += len(content)
	object, err := parse(ctx, content, c)
	switch {
	case !read || errors.Is(err, errUnreadable):
		l.unreadable(c)
		return nil
	case err != nil:
		return err
	}
	if !l.selected.labels.Matches(labels.Set(object.GetLabels())) {
		return nil
	}
	if c.isSecret() {
		shown, err := l.show(ctx, c, object)
		if shown == nil || err != nil {
			return err
		}
		object = shown
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("write an object: %w", err)
	}
	l.bytes += len(text)
	l.list.Items = append(l.list.Items, runtime.RawExtension{Raw: text})
	return nil
}

// show returns the Secret of a candidate as the caller wants to see it; nil if it is unreadable.
func (l *listing) show(ctx context.Context, c *candidate, secret *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if l.selected.decrypted {
		err := l.predecessors.check(ctx, c, secret)
		switch {
		case errors.Is(err, errPredecessor) && l.selected.name != "":
			return nil, predecessorError(secret, l.reader.User())
		case errors.Is(err, errPredecessor):
			l.unreadable(c)
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	shown, err := l.opener.show(ctx, secret)
	switch {
	case isSealed(err) && l.selected.name != "":
		return nil, sealedError(secret, err)
	case isSealed(err), errors.Is(err, errUnreadable):
		l.unreadable(c)
		return nil, nil
	}
	return shown, err
}

// unreadable records a file that is no object, or a Secret whose values were asked for and are not shown. The caller may read the
// objects of its type in its namespace.
func (l *listing) unreadable(c *candidate) {
	if len(l.list.Unreadable) < maxUnreadable {
		l.list.Unreadable = append(l.list.Unreadable, c.path)
	}
}

// full reports whether the response can have no more objects.
func (l *listing) full() bool {
	return len(l.list.Items) >= l.selected.limit || l.bytes >= maxResponse || l.scanned >= maxScanned
}

// finish completes the list. last is set if there are no more objects.
func (l *listing) finish(ctx context.Context, last bool) (err error) {
	omitted, err := l.omitted(ctx, last)
	if err != nil {
		return err
	}
	l.list.Omitted = int32(min(omitted, math.MaxInt32))
	if !last {
		l.list.Continue, err = page{Commit: l.state.commit.Hash.String(), After: l.at}.token()
	}
	return err
}

// omitted counts the objects of this page that are left out, in the namespaces in which the caller may read another type: a count must not
// show whether there was a namespace, or an object, that the caller has no rights on.
func (l *listing) omitted(ctx context.Context, last bool) (count int, err error) {
	if l.selected.name != "" {
		return 0, nil
	}
	hidden, readable := map[string]int{}, map[string]bool{}
	err = l.walk(ctx, func(c candidate) error {
		if l.reader.Reviews() >= 2*maxReviews || !last && c.below > l.at {
			return errEnough
		}
		allowed, err := l.selected.mayRead(ctx, l.reader, c.folder)
		switch {
		case err != nil:
			return apierrors.NewInternalError(err)
		case allowed:
			readable[c.folder.Namespace] = true
		case c.below > l.selected.page.After:
			hidden[c.folder.Namespace]++
		}
		return nil
	})
	for namespace := range readable {
		count += hidden[namespace]
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return count, err
}
