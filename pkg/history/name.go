// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// lastMillisecond is the last time that a name can contain, in milliseconds since 1970: 12 hexadecimal digits, until the year 10889.
	lastMillisecond = 1<<48 - 1
	// timeDigits and hashDigits are the lengths of the two parts of a name in hexadecimal digits. The hash distinguishes the changes of a
	// millisecond.
	timeDigits, hashDigits = 12, 12
)

// nameOf returns the name of a Change. It is the same whenever the change is recorded, and for all destinations to which one event of
// the object leads. Names of later changes sort first.
func nameOf(change *v1alpha1.ChangeSpec) string {
	sum := hashOf(change)
	return nameAt(change.Time.Time) + "-" + hex.EncodeToString(sum[:hashDigits/2])
}

// nameAt returns the first part of the names of changes at a time.
func nameAt(at time.Time) string {
	return fmt.Sprintf("%0*x", timeDigits, lastMillisecond-min(max(at.UnixMilli(), 0), lastMillisecond))
}

// timeOf returns the time in the name of a Change. ok is false for a name that nameOf does not return.
func timeOf(name string) (at time.Time, ok bool) {
	digits, _, found := strings.Cut(name, "-")
	inverted, err := strconv.ParseInt(digits, 16, 64)
	if !found || err != nil || len(digits) != timeDigits {
		return time.Time{}, false
	}
	return time.UnixMilli(lastMillisecond - inverted), true
}

// uidOf returns the uid of a Change, which is derived from its content, too.
func uidOf(change *v1alpha1.ChangeSpec) types.UID {
	sum := hashOf(change)
	id := sum[16:]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8 (custom) of RFC 9562
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16]))
}

// hashOf returns a hash of what identifies a change: the object and its last version. A change without a version, such as a deletion
// that a comparison found, is identified by its commit.
func hashOf(change *v1alpha1.ChangeSpec) [sha256.Size]byte {
	version := change.ResourceVersions.Last
	if version == "" {
		for _, commit := range change.Commits {
			version = "commit " + commit.SHA
		}
	}
	object := change.Object
	group, _, _ := strings.Cut(object.APIVersion, "/")
	return sha256.Sum256([]byte(strings.Join([]string{
		group, object.Resource, object.Namespace, object.Name, version, strconv.FormatInt(change.Time.UnixMilli(), 10),
	}, "\x00")))
}
