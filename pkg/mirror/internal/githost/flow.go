// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package githost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// api is the API of one kind of host, for one repository. Errors are those of client.do.
type api interface {
	limits() limits
	// list returns one page of pull requests, the newest first. It may return others than those of the filter. Whether texts and the
	// states of ended ones are complete depends on the host, see complete.
	list(ctx context.Context, op string, filter filter, page page) (found []*PullRequest, more bool, err error)
	// complete reports whether a pull request from a list is as get returns it.
	complete(listed *PullRequest) bool
	get(ctx context.Context, op string, number int64) (*PullRequest, error)
	// create opens a pull request. It may set labels and reviewers, as far as that is one request; Update adds the rest.
	create(ctx context.Context, op, head, base string, content Content) (*PullRequest, error)
	// edit writes title and body, and draft unless setDraft does.
	edit(ctx context.Context, op string, current *PullRequest, content Content) error
	// setDraft writes draft after edit, for hosts with a request of its own for that.
	setDraft(ctx context.Context, op string, current *PullRequest, isDraft bool) error
	// label adds labels that current does not have.
	label(ctx context.Context, op string, current *PullRequest, labels []string) error
	// reviewed returns who has reviewed a pull request already, if the host does not list them as reviewers any more.
	reviewed(ctx context.Context, op string, current *PullRequest) ([]string, error)
	// review adds reviewers that current does not have and who have not reviewed.
	review(ctx context.Context, op string, current *PullRequest, reviewers []string) error
	// comments returns the texts of one page of comments.
	comments(ctx context.Context, op string, number int64, page page) (texts []string, more bool, err error)
	comment(ctx context.Context, op string, number int64, text string) error
	close(ctx context.Context, op string, number int64) error
}

// filter selects pull requests.
type filter struct {
	head, base string
	// open selects open ones only.
	open bool
	// since selects those that were created at or after a time.
	since time.Time
}

func (f filter) matches(candidate *PullRequest) bool {
	return candidate.Head == f.head && candidate.Base == f.base && !candidate.Created.Before(f.since) &&
		(!f.open || candidate.State == Open)
}

// page is a page of a list, from 1.
type page struct{ number, size int }

// in returns the query for a page.
func (p page) in(query url.Values, numberName, sizeName string) url.Values {
	query.Set(numberName, strconv.Itoa(p.number))
	query.Set(sizeName, strconv.Itoa(p.size))
	return query
}

const (
	// maxPages bounds the pages that are read of a list.
	maxPages = 50
	nextLink = `rel="next"`
)

// Sizes of pages are tried in turn, because a page of large texts can be larger than what is read of a response. A pull request of GitHub
// or Gitea without its texts has 20 KiB.
var (
	pullRequestPages = []int{20, 5, 1}
	commentPages     = []int{100, 20, 5, 1}
)

// pages calls read for each page until it returns false or an error.
func pages(op string, sizes []int, read func(page) (more bool, err error)) error {
	var err error
	for _, size := range sizes {
		err = pagesOf(op, size, read)
		if failed, ok := errors.AsType[*Error](err); !ok || !failed.tooLarge {
			return err
		}
	}
	return err
}

func pagesOf(op string, size int, read func(page) (bool, error)) error {
	for number := 1; number <= maxPages; number++ {
		more, err := read(page{number, size})
		if err != nil || !more {
			return err
		}
	}
	return &Error{Kind: Protocol, Op: op, Message: fmt.Sprintf("the host lists more than the %d pages of %d that are read", maxPages, size)}
}

// hasMore reports whether a page follows one with count items. Hosts may return smaller pages than requested and then link to the next.
// The address of the link is not used, so that the requests stay at the host.
func hasMore(header http.Header, count int, current page) bool {
	if links := header.Get("Link"); links != "" {
		return strings.Contains(links, nextLink) && count > 0
	}
	return count >= current.size
}

// host implements Host with the API of one kind.
type host struct {
	api     api
	address string
}

var _ Host = (*host)(nil)

// Address implements Host.
func (h *host) Address() string { return h.address }

// Open implements Host.
func (h *host) Open(ctx context.Context, head, base string) (*PullRequest, error) {
	return h.find(ctx, "find the open pull request", filter{head: head, base: base, open: true})
}

// Newest implements Host.
func (h *host) Newest(ctx context.Context, head, base string, since time.Time) (*PullRequest, error) {
	return h.find(ctx, "find the newest pull request", filter{head: head, base: base, since: since.Truncate(time.Second)})
}

func (h *host) find(ctx context.Context, op string, wanted filter) (*PullRequest, error) {
	var found *PullRequest
	err := pages(op, pullRequestPages, func(current page) (bool, error) {
		listed, more, err := h.api.list(ctx, op, wanted, current)
		if err != nil {
			return false, err
		}
		if at := slices.IndexFunc(listed, wanted.matches); at >= 0 {
			found = listed[at]
			return false, nil
		}
		// Lists begin with the newest.
		isOld := len(listed) > 0 && listed[len(listed)-1].Created.Before(wanted.since)
		return more && !isOld, nil
	})
	if err != nil || found == nil {
		return nil, err
	}
	if h.api.complete(found) {
		return checked(op, found, found.Number)
	}
	return h.get(ctx, op, found.Number)
}

// Get implements Host.
func (h *host) Get(ctx context.Context, number int64) (*PullRequest, error) {
	return h.get(ctx, fmt.Sprintf("read the pull request %d", number), number)
}

// get returns the pull request with a number, if the response is one.
func (h *host) get(ctx context.Context, op string, number int64) (*PullRequest, error) {
	found, err := h.api.get(ctx, op, number)
	if err != nil {
		return nil, err
	}
	return checked(op, found, number)
}

// checked returns a pull request, or an error unless it has the number and branches: a proxy or another API may have responded. Times that no
// API object can hold are dropped.
func checked(op string, found *PullRequest, number int64) (*PullRequest, error) {
	if found.Number != number || number <= 0 || found.Head == "" || found.Base == "" {
		return nil, &Error{Kind: Protocol, Op: op, Message: "the host does not respond with the pull request: it has another number, or no branches"}
	}
	found.Created, found.Ended = storable(found.Created), storable(found.Ended)
	return found, nil
}

// storable returns a time in UTC, or zero if it is before 1970 or after the year 9998.
func storable(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1970 || t.Year() > 9998 {
		return time.Time{}
	}
	return t
}

// Create implements Host.
func (h *host) Create(ctx context.Context, head, base string, content Content) (*PullRequest, error) {
	const op = "create the pull request"
	content = h.api.limits().fit(content)
	created, err := h.api.create(ctx, op, head, base, content)
	if err != nil {
		return h.existing(ctx, head, base, err)
	}
	if created, err = checked(op, created, created.Number); err != nil {
		return nil, err
	}
	return h.add(ctx, op, created, content)
}

// existing returns the open pull request after an attempt to open one has failed, and the error if there is none. Hosts report a second
// pull request with the same branches with different statuses and with messages in the language of the token's user.
func (h *host) existing(ctx context.Context, head, base string, err error) (*PullRequest, error) {
	failed, ok := errors.AsType[*Error](err)
	if !ok || failed.Kind != Invalid && failed.Kind != Refused {
		return nil, err
	}
	if existing, findErr := h.Open(ctx, head, base); findErr == nil && existing != nil {
		return existing, nil
	}
	return nil, err
}

// Update implements Host.
func (h *host) Update(ctx context.Context, current *PullRequest, content Content) (*PullRequest, error) {
	op := fmt.Sprintf("update the pull request %d", current.Number)
	content = h.api.limits().fit(content)
	if current.Title == content.Title && sameText(current.Body, content.Body) && current.Draft == content.Draft {
		return h.add(ctx, op, current, content)
	}
	if err := h.api.edit(ctx, op, current, content); err != nil {
		return nil, err
	}
	changed := *current
	changed.Title, changed.Body = content.Title, content.Body
	var draftErr error
	if current.Draft != content.Draft {
		if draftErr = h.api.setDraft(ctx, op, current, content.Draft); draftErr == nil {
			changed.Draft = content.Draft
		}
	}
	updated, err := h.add(ctx, op, &changed, content)
	return updated, errors.Join(draftErr, err)
}

// sameText compares texts as hosts may have normalized them.
func sameText(a, b string) bool { return normalize(a) == normalize(b) }

func normalize(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }

// add adds labels and reviewers. One that is refused does not prevent the others.
func (h *host) add(ctx context.Context, op string, current *PullRequest, content Content) (*PullRequest, error) {
	labels, labelsErr := addEach("label", missing(current.Labels, content.Labels), func(labels []string) error {
		return h.api.label(ctx, op, current, labels)
	})
	reviewers, reviewersErr := h.addReviewers(ctx, op, current, missing(current.Reviewers, content.Reviewers))
	result := *current
	result.Labels, result.Reviewers = slices.Concat(current.Labels, labels), slices.Concat(current.Reviewers, reviewers)
	return &result, errors.Join(labelsErr, reviewersErr)
}

// addReviewers adds reviewers and returns those that were added.
func (h *host) addReviewers(ctx context.Context, op string, current *PullRequest, reviewers []string) ([]string, error) {
	if len(reviewers) == 0 {
		return nil, nil
	}
	reviewed, err := h.api.reviewed(ctx, op, current)
	if err != nil {
		return nil, err
	}
	return addEach("reviewer", missing(reviewed, reviewers), func(reviewers []string) error {
		return h.api.review(ctx, op, current, reviewers)
	})
}

// addEach adds values and returns those that were added. Hosts refuse a request with one value that is not valid, so such a request is
// repeated with each value by itself. The error then names the value, because hosts do not.
func addEach(noun string, values []string, add func([]string) error) ([]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	err := add(values)
	if err == nil {
		return values, nil
	}
	failed, isHost := errors.AsType[*Error](err)
	switch {
	case !isHost || failed.Kind != Invalid:
		return nil, err
	case len(values) == 1:
		return nil, fmt.Errorf("%s %s: %w", noun, printable.Line(values[0]), err)
	}
	var added []string
	var errs []error
	for _, value := range values {
		if err := add([]string{value}); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", noun, printable.Line(value), err))
		} else {
			added = append(added, value)
		}
	}
	return added, errors.Join(errs...)
}

// missing returns the wanted values that are not present. Hosts compare labels and logins without regard to case.
func missing(present, wanted []string) []string {
	var absent []string
	for _, value := range wanted {
		same := func(other string) bool { return strings.EqualFold(other, value) }
		if value != "" && !slices.ContainsFunc(present, same) && !slices.ContainsFunc(absent, same) {
			absent = append(absent, value)
		}
	}
	return absent
}

// Comment implements Host.
func (h *host) Comment(ctx context.Context, number int64, marker, text string) error {
	op := fmt.Sprintf("comment on the pull request %d", number)
	ending, err := markerText(marker)
	if err != nil {
		return err
	}
	exists := false
	err = pages(op, commentPages, func(current page) (bool, error) {
		texts, more, err := h.api.comments(ctx, op, number, current)
		exists = slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(normalize(text), ending) })
		return more && !exists, err
	})
	if err != nil || exists {
		return err
	}
	return h.api.comment(ctx, op, number, h.api.limits().fitComment(text, ending))
}

// Close implements Host.
func (h *host) Close(ctx context.Context, number int64) (*PullRequest, error) {
	op := fmt.Sprintf("close the pull request %d", number)
	current, err := h.get(ctx, op, number)
	if err != nil || current.State != Open {
		return current, err
	}
	if err := h.api.close(ctx, op, number); err != nil {
		// It may have been merged or closed in the meantime, which hosts report as different errors.
		if current, getErr := h.get(ctx, op, number); getErr == nil && current.State != Open {
			return current, nil
		}
		return nil, err
	}
	return h.get(ctx, op, number)
}
