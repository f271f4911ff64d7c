// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// want describes which part of a branch to fetch.
type want struct {
	// have is a commit whose objects are all known; zero for none.
	have Hash
	// depth is the number of commits to fetch, the tip included; 0 is all that are not reachable from have.
	depth int
	// filter omits objects, if the server supports that.
	filter packp.Filter
	// limit bounds the pack, in bytes. Zero leaves it to the budget, for packs that are read whole however many blobs they
	// have.
	limit int64
	// objects are fetched instead of the tip.
	objects []Hash
	// visitor receives the objects.
	visitor packVisitor
}

// fetchTip returns the tip of the reference and, unless choose returns false, fetches what choose returns for it. If the
// reference does not exist, the tip is zero and nothing is fetched.
func (r *Remote) fetchTip(ctx context.Context, budget *budget, reference string, choose func(tip Hash) (want, bool)) (Hash, error) {
	session, err := r.open(ctx, uploadPack, budget)
	if err != nil {
		return Hash{}, err
	}
	defer session.close()
	advertised, err := session.advertisement(ctx, reference)
	if err != nil {
		return Hash{}, err
	}
	tip := advertised.References[reference]
	if tip.IsZero() {
		return tip, nil
	}
	wanted, chosen := choose(tip)
	if !chosen {
		return tip, nil
	}
	return tip, fetch(ctx, session, budget, advertised.Capabilities, tip, wanted)
}

func fetch(ctx context.Context, s session, budget *budget, offered *capability.List, tip Hash, wanted want) error {
	// A thin pack could omit trees of which only the hash is known here.
	offered.Delete(capability.ThinPack)
	req := packp.NewUploadRequestFromCapabilities(offered)
	req.Wants = []Hash{tip}
	if len(wanted.objects) > 0 {
		req.Wants = wanted.objects
	}
	if offered.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress)
	}
	if wanted.depth > 0 && offered.Supports(capability.Shallow) {
		_ = req.Capabilities.Set(capability.Shallow)
		req.Depth = packp.DepthCommits(wanted.depth)
	}
	if wanted.filter != "" && offered.Supports(capability.Filter) {
		_ = req.Capabilities.Set(capability.Filter)
		req.Filter = wanted.filter
	}
	request, err := encodeFetch(req, wanted.have)
	if err != nil {
		return err
	}
	response, err := s.request(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Close() }()
	return readFetched(ctx, bufio.NewReaderSize(response, packetBuffer), budget, req, wanted)
}

// encodeFetch returns the whole negotiation as one request: wants, have, done.
func encodeFetch(req *packp.UploadRequest, have Hash) ([]byte, error) {
	var request bytes.Buffer
	if err := req.Encode(&request); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	packets := pktline.NewEncoder(&request)
	if !have.IsZero() {
		if err := packets.Encodef("have %s\n", have); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	if err := packets.EncodeString("done\n"); err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return request.Bytes(), nil
}

func readFetched(ctx context.Context, response *bufio.Reader, budget *budget, req *packp.UploadRequest, wanted want) error {
	if !req.Depth.IsZero() {
		if err := skipUntilFlush(response); err != nil {
			return err
		}
	}
	if err := skipAcknowledgements(response); err != nil {
		return err
	}
	limit := wanted.limit
	if limit == 0 {
		limit = math.MaxInt64
	}
	return readPack(ctx, newDataReader(response, req.Capabilities, io.Discard), limit, budget, wanted.visitor)
}

// skipUntilFlush skips the list of shallow commits.
func skipUntilFlush(response io.Reader) error {
	packets := pktline.NewScanner(limitPart(response, maxNegotiation, "commits without parents"))
	for packets.Scan() {
		if len(packets.Bytes()) == 0 {
			return nil
		}
	}
	return endedEarly(packets)
}

// skipAcknowledgements skips the acknowledgements up to the data. With multi_ack every line but the last ends in a
// status word; without it some servers send the last one twice.
func skipAcknowledgements(response *bufio.Reader) error {
	const label = 4 + len("ACK")
	packets := pktline.NewScanner(limitPart(response, maxNegotiation, "acknowledgements"))
	for {
		head, err := response.Peek(label)
		if err == nil && !bytes.HasSuffix(head, []byte("ACK")) && !bytes.HasSuffix(head, []byte("NAK")) &&
			!bytes.HasSuffix(head, []byte("ERR")) {
			return nil
		}
		if !packets.Scan() {
			return endedEarly(packets)
		}
	}
}

func endedEarly(packets *pktline.Scanner) error {
	if err := packets.Err(); err != nil {
		return packetError(err)
	}
	return io.ErrUnexpectedEOF
}
