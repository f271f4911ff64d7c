// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// noThin is what a server says that cannot complete a pack by objects of its own.
const noThin = capability.Capability("no-thin")

// unpackDone is the report's word for a pack that was read.
const unpackDone = "ok"

// update moves a reference.
type update struct {
	reference plumbing.ReferenceName
	old, new  Hash
	// thin says that the pack needs objects of the remote to be read.
	thin bool
	pack []byte
}

// pushed is what a push taught about the server, also one that failed.
type pushed struct {
	// unpackFailed says that the server could not read the pack.
	unpackFailed bool
}

// push sends the update. The server makes it only if the reference is still at old; if it is known beforehand that it is
// not, nothing is sent. Where the server refuses, its own word for the reason is not relied upon: if the reference has
// moved, that is the reason.
func (r *Remote) push(ctx context.Context, budget *budget, u update) (pushed, error) {
	learned, err := r.tryPush(ctx, budget, u)
	if err == nil || kindOf(err) != Rejected {
		return learned, err
	}
	tip, lookup := r.fetchTip(ctx, budget, string(u.reference), func(Hash) (want, bool) { return want{}, false })
	if lookup == nil && tip != u.old {
		return learned, ErrMoved
	}
	return learned, err
}

func (r *Remote) tryPush(ctx context.Context, budget *budget, u update) (pushed, error) {
	session, err := r.open(ctx, receivePack, budget)
	if err != nil {
		return pushed{}, err
	}
	defer session.close()
	offered, err := r.offered(ctx, session, u)
	if err != nil {
		return pushed{}, err
	}
	learned, err := sendUpdate(ctx, session, offered, u)
	if err == nil {
		r.remember(session, offered, u)
	}
	return learned, err
}

// offered returns what the server can do. It fails if the update is known not to be possible.
func (r *Remote) offered(ctx context.Context, s session, u update) (*capability.List, error) {
	if offered, ok := r.follow(s, u); ok {
		return offered, nil
	}
	advertised, err := s.advertisement(ctx, string(u.reference))
	if err != nil {
		return nil, err
	}
	r.completesPacks.Store(!advertised.Capabilities.Supports(noThin))
	switch {
	case advertised.References[string(u.reference)] != u.old:
		return nil, ErrMoved
	case u.thin && !r.completesPacks.Load():
		return nil, refuse(Rejected, "the server no longer completes packs")
	}
	return advertised.Capabilities, nil
}

// sendUpdate sends the update and reads the server's verdict.
func sendUpdate(ctx context.Context, s session, offered *capability.List, u update) (pushed, error) {
	asked, err := pushRequest(offered, u)
	if err != nil {
		return pushed{}, err
	}
	var head bytes.Buffer
	if err := asked.Encode(&head); err != nil {
		return pushed{}, fmt.Errorf("encode the request: %w", err)
	}
	answer, err := s.request(ctx, head.Bytes(), u.pack)
	if err != nil {
		return pushed{}, err
	}
	defer func() { _ = answer.Close() }()
	report, talk, err := readReport(bufio.NewReaderSize(answer, answerBuffer), asked)
	if err != nil {
		return pushed{}, err
	}
	return pushed{unpackFailed: report.UnpackStatus != unpackDone}, verdict(report, talk)
}

func pushRequest(offered *capability.List, u update) (*packp.ReferenceUpdateRequest, error) {
	if !offered.Supports(capability.ReportStatus) {
		return nil, refuse(Protocol, "the server does not report whether a push succeeded")
	}
	asked := packp.NewReferenceUpdateRequestFromCapabilities(offered)
	asked.Commands = []*packp.Command{{Name: u.reference, Old: u.old, New: u.new}}
	for _, wanted := range []capability.Capability{capability.Sideband64k, capability.Atomic, capability.Quiet} {
		if offered.Supports(wanted) {
			_ = asked.Capabilities.Set(wanted)
		}
	}
	return asked, nil
}

// readReport reads the server's report and what its hooks said.
func readReport(answer *bufio.Reader, asked *packp.ReferenceUpdateRequest) (*packp.ReportStatus, string, error) {
	talk := &message{}
	data := newDataReader(answer, asked.Capabilities, talk)
	report := packp.NewReportStatus()
	limited := limitPart(data, maxReport, "its report of the push")
	if err := report.Decode(limited); err != nil {
		if err = packetError(err); limited.left <= 0 {
			err = limited.exceeded // The library says only that the report has no end.
		}
		if text := talk.text(); text != "" {
			return nil, "", fmt.Errorf("read the server's report: %w; the server says: %s", err, text)
		}
		return nil, "", fmt.Errorf("read the server's report: %w", err)
	}
	// Hooks that run after the update still print; a connection that breaks now changes nothing.
	_, _ = io.Copy(io.Discard, limitPart(data, maxReport, "data after its report of the push"))
	return report, talk.text(), nil
}

func verdict(report *packp.ReportStatus, talk string) error {
	if err := report.Error(); err != nil {
		reasons := []string{err.Error()}
		if talk != "" {
			reasons = append(reasons, talk)
		}
		return refuse(Rejected, "%s", strings.Join(reasons, ": "))
	}
	if len(report.CommandStatuses) == 0 {
		return refuse(Protocol, "the server does not say whether the branch was updated")
	}
	return nil
}
