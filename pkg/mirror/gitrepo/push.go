// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// noThin is the capability of a server that does not accept thin packs.
const noThin = capability.Capability("no-thin")

// unpackOK is the unpack status of a pack that the server accepted.
const unpackOK = "ok"

// update is a reference update with the pack that it needs.
type update struct {
	reference plumbing.ReferenceName
	old, new  Hash
	// thin is set if the pack has deltas against objects that only the remote has.
	thin bool
	pack []byte
}

// pushResult is what a push has shown about the server. It is also valid beside an error.
type pushResult struct {
	// unpackFailed is set if the server could not unpack a thin pack.
	unpackFailed bool
	// refused is set if the server has reported that it did not apply the update.
	refused bool
}

// push sends the update. The server applies it only if the reference is still at old. Nothing is sent if the
// advertisement shows that it is not. After a rejection push reads the reference again instead of relying on the
// server's reason: if it has moved, the error is ErrMoved, unless the update is what has moved it, as after a proxy has sent
// the request twice. If it is still at old, and the server has reported a rejection, the error is ErrRefused.
//
// If follow is not nil, the reference is known to have moved, and follow returns the update to send instead. It is called when the session
// is open: the less is left to do once it has read the new tip, the less often another writer is faster.
func (r *Remote) push(ctx context.Context, budget *budget, u update, follow func(context.Context) (update, error)) (pushResult, error) {
	result, err := r.tryPush(ctx, budget, &u, follow)
	if errors.Is(err, errRedirected) {
		// The repository was renamed since the last push, whose advertisement tryPush has reused. It reads a new one now.
		result, err = r.tryPush(ctx, budget, &u, follow)
	}
	if err == nil || kindOf(err) != Rejected {
		return result, r.explainForbidden(ctx, budget, err)
	}
	tip, lookup := r.fetchTip(ctx, budget, string(u.reference), func(Hash) (want, bool) { return want{}, false })
	switch {
	case lookup != nil || tip == u.old && !result.refused:
		return result, err
	case tip == u.old:
		return result, &refusal{kind: Rejected, text: err.Error(), cause: ErrRefused}
	case tip == u.new:
		return result, nil
	default:
		return result, ErrMoved
	}
}

// tryPush sends the update, or the one that follow returns, and sets u to that.
func (r *Remote) tryPush(
	ctx context.Context, budget *budget, u *update, follow func(context.Context) (update, error),
) (pushResult, error) {
	session, err := r.open(ctx, receivePack, budget)
	if err != nil {
		return pushResult{}, err
	}
	defer session.close()
	offered, err := r.offered(ctx, session, *u, follow != nil)
	if err == nil && follow != nil {
		var followed update
		if followed, err = follow(ctx); err == nil {
			*u = followed
		}
	}
	var result pushResult
	if err == nil {
		result, err = sendUpdate(ctx, session, offered, *u)
	}
	r.saveLastPush(session, offered, *u, err)
	return result, err
}

// offered returns the server's capabilities. Unless the update is going to be replaced, it fails if the advertisement shows that it would
// be rejected.
func (r *Remote) offered(ctx context.Context, s session, u update, replaced bool) (*capability.List, error) {
	if offered, ok := r.reuseAdvertisement(s, u, replaced); ok {
		return offered, nil
	}
	advertised, err := s.advertisement(ctx, string(u.reference))
	if err != nil {
		return nil, err
	}
	r.completesPacks.Store(!advertised.Capabilities.Supports(noThin))
	switch {
	case replaced:
	case advertised.References[string(u.reference)] != u.old:
		return advertised.Capabilities, ErrMoved
	case u.thin && !r.completesPacks.Load():
		return nil, refuse(Rejected, "the server no longer completes packs")
	}
	return advertised.Capabilities, nil
}

// sendUpdate sends the update and reads the server's report.
func sendUpdate(ctx context.Context, s session, offered *capability.List, u update) (pushResult, error) {
	req, err := pushRequest(offered, u)
	if err != nil {
		return pushResult{}, err
	}
	var head bytes.Buffer
	if err := req.Encode(&head); err != nil {
		return pushResult{}, fmt.Errorf("encode the request: %w", err)
	}
	response, err := s.request(ctx, head.Bytes(), u.pack)
	if err != nil {
		return pushResult{}, err
	}
	defer func() { _ = response.Close() }()
	report, progress, err := readReport(bufio.NewReaderSize(response, packetBuffer), req)
	if err != nil {
		return pushResult{}, err
	}
	result := pushResult{unpackFailed: u.thin && report.UnpackStatus != unpackOK, refused: report.Error() != nil}
	return result, reportError(report, progress)
}

func pushRequest(offered *capability.List, u update) (*packp.ReferenceUpdateRequest, error) {
	if !offered.Supports(capability.ReportStatus) {
		return nil, refuse(Protocol, "the server does not report whether a push succeeded")
	}
	req := packp.NewReferenceUpdateRequestFromCapabilities(offered)
	req.Commands = []*packp.Command{{Name: u.reference, Old: u.old, New: u.new}}
	for _, wanted := range []capability.Capability{capability.Sideband64k, capability.Atomic, capability.Quiet} {
		if offered.Supports(wanted) {
			_ = req.Capabilities.Set(wanted)
		}
	}
	return req, nil
}

// readReport reads the server's report and the output of its hooks.
func readReport(response *bufio.Reader, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, string, error) {
	progress := &message{}
	data := newDataReader(response, req.Capabilities, progress)
	report := packp.NewReportStatus()
	limited := limitPart(data, maxReport, "its report of the push")
	if err := report.Decode(limited); err != nil {
		if err = packetError(err); limited.left <= 0 {
			err = limited.exceeded // The library reports only an unexpected end.
		}
		if text := progress.text(); text != "" {
			return nil, "", fmt.Errorf("read the server's report: %w; the server says: %s", err, text)
		}
		return nil, "", fmt.Errorf("read the server's report: %w", err)
	}
	// Hooks that run after the update may still print. A connection that breaks now does not change the result.
	_, _ = io.Copy(io.Discard, limitPart(data, maxReport, "data after its report of the push"))
	return report, progress.text(), nil
}

func reportError(report *packp.ReportStatus, progress string) error {
	if err := report.Error(); err != nil {
		reasons := []string{err.Error()}
		if progress != "" {
			reasons = append(reasons, progress)
		}
		return refuse(Rejected, "%s", strings.Join(reasons, ": "))
	}
	if len(report.CommandStatuses) == 0 {
		return refuse(Protocol, "the server does not say whether the branch was updated")
	}
	return nil
}
