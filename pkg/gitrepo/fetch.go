// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

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
	// limit bounds what is read, in bytes of the pack.
	limit int64
	// objects are wanted instead of the tip.
	objects []Hash
	// blobs is the size up to which blobs are kept; zero for none.
	blobs int64
}

// noLimit is for packs that are read whole, however many blobs are in them.
const noLimit = int64(1) << 62

// fetchTip reads where the reference is and, unless choose says no, fetches what choose wants of it. A reference that
// does not exist has the zero tip and no objects.
func (r *Remote) fetchTip(
	ctx context.Context, reference string, choose func(tip Hash) (want, bool),
) (Hash, objects, error) {
	session, err := r.open(ctx, uploadPack)
	if err != nil {
		return Hash{}, objects{}, err
	}
	defer session.close()
	advertised, err := session.advertisement(ctx)
	if err != nil {
		return Hash{}, objects{}, err
	}
	tip := advertised.References[reference]
	if tip.IsZero() {
		return tip, objects{}, nil
	}
	wanted, chosen := choose(tip)
	if !chosen {
		return tip, objects{}, nil
	}
	found, err := fetch(ctx, session, advertised.Capabilities, tip, wanted)
	return tip, found, err
}

func fetch(ctx context.Context, s session, offered *capability.List, tip Hash, wanted want) (objects, error) {
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
		return objects{}, err
	}
	answer, err := s.request(ctx, request)
	if err != nil {
		return objects{}, err
	}
	defer func() { _ = answer.Close() }()
	return readFetched(bufio.NewReaderSize(answer, answerBuffer), asked, wanted)
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

func readFetched(answer *bufio.Reader, asked *packp.UploadRequest, wanted want) (objects, error) {
	if !asked.Depth.IsZero() {
		if err := skipUntilFlush(answer); err != nil {
			return objects{}, err
		}
	}
	if err := skipAcknowledgements(answer); err != nil {
		return objects{}, err
	}
	return readPack(newDataReader(answer, asked.Capabilities, io.Discard), wanted.limit, wanted.blobs)
}

// skipUntilFlush reads over the list of commits whose parents the server leaves out.
func skipUntilFlush(answer io.Reader) error {
	packets := pktline.NewScanner(answer)
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
	packets := pktline.NewScanner(answer)
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
