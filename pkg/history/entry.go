// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// entry describes a Change in the index: where it is, and hashes of what field selectors select.
type entry struct {
	namespace string
	name      [nameBytes]byte
	// operation is the first letter of the operation.
	operation byte
	bypass    bool
	// commit has the first digits of the commit's hash.
	commit                                [commitBytes]byte
	object, resource, kind, group, author uint32
}

const (
	// nameBytes is the size of the name of a Change without its hyphen.
	nameBytes = (timeDigits + hashDigits) / 2
	// commitBytes is how much of a commit's hash an entry has.
	commitBytes = 4
	// bypassBit is set beside the letter of the operation if the change is a bypass.
	bypassBit = 0x80
	// entryBytes is the size of the fixed part of an encoded entry.
	entryBytes = nameBytes + 1 + commitBytes + 5*4
)

// entriesOf returns an entry for each commit of a Change.
func entriesOf(change *v1alpha1.Change) []entry {
	var out []entry
	object := objectOf(&change.Spec)
	for _, commit := range change.Spec.Commits {
		next := entry{
			namespace: change.Namespace, object: hashText(object.Name), resource: hashText(object.Resource),
			group: hashText(object.Group), kind: hashText(change.Spec.Object.Kind), bypass: change.Spec.Bypass,
		}
		if author := change.Spec.Author; author != nil {
			next.author = hashText(author.Username)
		}
		if change.Spec.Operation != "" {
			next.operation = change.Spec.Operation[0]
		}
		// Names and commits are hexadecimal. Others have no digits in the entry and are not found by it.
		_, _ = hex.Decode(next.name[:], []byte(strings.ReplaceAll(change.Name, "-", "")))
		_, _ = hex.Decode(next.commit[:], []byte(commit.SHA[:min(2*commitBytes, len(commit.SHA))]))
		out = append(out, next)
	}
	return out
}

// position returns where the Change is in lists.
func (e *entry) position() position {
	digits := hex.EncodeToString(e.name[:])
	return position{name: digits[:timeDigits] + "-" + digits[timeDigits:], namespace: e.namespace}
}

// time returns the time of the change.
func (e *entry) time() time.Time {
	var inverted [8]byte
	copy(inverted[2:], e.name[:timeDigits/2])
	return time.UnixMilli(lastMillisecond - int64(binary.BigEndian.Uint64(inverted[:])))
}

// objectHashes identifies an object, but for objects with the same hashes.
type objectHashes struct {
	namespace               string
	object, resource, group uint32
}

// hashes returns the object.
func (e *entry) hashes() objectHashes {
	return objectHashes{e.namespace, e.object, e.resource, e.group}
}

// hashText returns a hash, 0 for the empty string.
func hashText(text string) uint32 {
	if text == "" {
		return 0
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(text)) // It never fails.
	return max(hash.Sum32(), 1)
}

// errBlock is returned for a block that cannot be decoded.
var errBlock = errors.New("decode a block of the index of Changes")

// encodeBlock encodes entries: the namespaces, of at most 63 bytes, with a length each, a zero, and the entries with the number of their namespace.
func encodeBlock(entries []entry) []byte {
	var namespaces []string
	numbers := make([]byte, len(entries))
	for i := range entries {
		number := slices.Index(namespaces, entries[i].namespace)
		if number < 0 {
			number = len(namespaces)
			namespaces = append(namespaces, entries[i].namespace)
		}
		numbers[i] = byte(number)
	}
	var out []byte
	for _, namespace := range namespaces {
		out = append(append(out, byte(len(namespace))), namespace...)
	}
	out = append(out, 0)
	for i := range entries {
		out = entries[i].append(append(out, numbers[i]))
	}
	return out
}

// append appends the fixed part of an entry.
func (e *entry) append(out []byte) []byte {
	out = append(out, e.name[:]...)
	operation := e.operation
	if e.bypass {
		operation |= bypassBit
	}
	out = append(out, operation)
	out = append(out, e.commit[:]...)
	for _, hash := range []uint32{e.object, e.resource, e.kind, e.group, e.author} {
		out = binary.BigEndian.AppendUint32(out, hash)
	}
	return out
}

// decodeBlock decodes what encodeBlock has returned.
func decodeBlock(block []byte) ([]entry, error) {
	var namespaces []string
	for {
		if len(block) == 0 || len(block) <= int(block[0]) {
			return nil, errBlock
		}
		length := int(block[0])
		if length == 0 {
			block = block[1:]
			break
		}
		namespaces = append(namespaces, string(block[1:1+length]))
		block = block[1+length:]
	}
	if len(block)%(1+entryBytes) != 0 {
		return nil, errBlock
	}
	entries := make([]entry, len(block)/(1+entryBytes))
	for i := range entries {
		if int(block[0]) >= len(namespaces) {
			return nil, errBlock
		}
		entries[i].namespace = namespaces[block[0]]
		entries[i].decode(block[1:])
		block = block[1+entryBytes:]
	}
	return entries, nil
}

// decode decodes the fixed part of an entry.
func (e *entry) decode(from []byte) {
	from = from[copy(e.name[:], from):]
	e.operation, e.bypass = from[0]&^bypassBit, from[0]&bypassBit != 0
	from = from[1:]
	from = from[copy(e.commit[:], from):]
	for i, hash := range []*uint32{&e.object, &e.resource, &e.kind, &e.group, &e.author} {
		*hash = binary.BigEndian.Uint32(from[4*i:])
	}
}
