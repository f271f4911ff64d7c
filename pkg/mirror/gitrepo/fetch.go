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

// want says which part of a branch to fetch.
type want struct {
	// have is a commit of which everything is known; zero for none.
	have Hash
	// depth is the number of commits from the tip on; 0 is all that have does not reach.
	depth int
	// filter leaves objects out, where the server can.
	filter packp.Filter
	// limit bounds the pack, in bytes; zero leaves it to the budget, for packs that are read whole, however many blobs are
	// in them.
	limit int64
	// objects are wanted instead of the tip.
	objects []Hash
	// visitor takes what comes.
	visitor packVisitor
}

// fetchTip reads where the reference is and, unless choose says no, fetches what choose wants of it. A reference that
// does not exist has the zero tip, and nothing is fetched.
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
	// A thin pack leaves out trees that are known here by their hash only.
	offered.Delete(capability.ThinPack)
	asked := packp.NewUploadRequestFromCapabilities(offered)
	asked.Wants = []Hash{tip}
	if len(wanted.objects) > 0 {
		asked.Wants = wanted.objects
	}
	if offered.Supports(capability.NoProgress) {
		_ = asked.Capabilities.Set(capability.NoProgress)
	}
	if wanted.depth > 0 && offered.Supports(capability.Shallow) {
		_ = asked.Capabilities.Set(capability.Shallow)
		asked.Depth = packp.DepthCommits(wanted.depth)
	}
	if wanted.filter != "" && offered.Supports(capability.Filter) {
		_ = asked.Capabilities.Set(capability.Filter)
		asked.Filter = wanted.filter
	}
	request, err := encodeFetch(asked, wanted.have)
	if err != nil {
		return err
	}
	answer, err := s.request(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	return readFetched(ctx, bufio.NewReaderSize(answer, answerBuffer), budget, asked, wanted)
}

// encodeFetch writes the whole negotiation at once: what is wanted, what is known, done.
func encodeFetch(asked *packp.UploadRequest, have Hash) ([]byte, error) {
	var request bytes.Buffer
	if err := asked.Encode(&request); err != nil {
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

func readFetched(ctx context.Context, answer *bufio.Reader, budget *budget, asked *packp.UploadRequest, wanted want) error {
	if !asked.Depth.IsZero() {
		if err := skipUntilFlush(answer); err != nil {
			return err
		}
	}
	if err := skipAcknowledgements(answer); err != nil {
		return err
	}
	limit := wanted.limit
	if limit == 0 {
		limit = math.MaxInt64
	}
	return readPack(ctx, newDataReader(answer, asked.Capabilities, io.Discard), limit, budget, wanted.visitor)
}

// skipUntilFlush reads over the list of commits whose parents the server leaves out.
func skipUntilFlush(answer io.Reader) error {
	packets := pktline.NewScanner(limitPart(answer, maxNegotiation, "commits without parents"))
	for packets.Scan() {
		if len(packets.Bytes()) == 0 {
			return nil
		}
	}
	return endedEarly(packets)
}

// skipAcknowledgements reads over what the server says to the commits we named, up to the data. With multi_ack a line
// ends in a word of its own for every commit but the last; without, some servers say the last one twice.
func skipAcknowledgements(answer *bufio.Reader) error {
	const label = 4 + len("ACK")
	packets := pktline.NewScanner(limitPart(answer, maxNegotiation, "acknowledgements"))
	for {
		head, err := answer.Peek(label)
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
