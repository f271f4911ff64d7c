// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package proposal

import (
	"reflect"
	"testing"
	"time"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestLeave checks what is kept of the pull requests of an earlier place.
func TestLeave(t *testing.T) {
	left := Branches{Head: "old/shop/main", Base: "main"}
	was := Branches{Head: "slipstream/shop/main", Base: "main"}
	const place, folder, elsewhere = `repo slipstream/shop/main main "a"`, `repo slipstream/shop/main main "b"`, `other slipstream/shop/main main "a"`
	for name, test := range map[string]struct {
		before Record
		to     string
		want   Record
	}{
		"nothing before":     {Record{}, folder, Record{Place: folder}},
		"open":               {Record{Place: place, Number: 3, State: v1alpha1.ProposalOpen}, folder, Record{Place: folder, Left: []Branches{was}, Earlier: 3}},
		"opening":            {Record{Place: place, Creating: time.Unix(1, 0)}, folder, Record{Place: folder, Left: []Branches{was}}},
		"merged":             {Record{Place: place, Number: 3, State: v1alpha1.ProposalMerged}, folder, Record{Place: folder, Earlier: 3}},
		"moved before":       {Record{Place: place, Left: []Branches{left}, Earlier: 2}, folder, Record{Place: folder, Left: []Branches{left}, Earlier: 2}},
		"another repository": {Record{Place: place, Number: 3, State: v1alpha1.ProposalOpen, Left: []Branches{left}}, elsewhere, Record{Place: elsewhere}},
	} {
		if got := test.before.leave(test.to); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
