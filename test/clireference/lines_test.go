/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package clireference

import (
	"reflect"
	"testing"

	"github.com/spf13/cobra"
)

func TestLinesOf(t *testing.T) {
	page := "Run `tool ignored`:\n\n    tool paint 'a b' --colour \"$RED\" # a comment\n\n1. In a list:\n\n       tool show \"${MANY[@]}\" all > file\n\n" +
		"```sh\nVARIABLE=x\ntool run --here \\\n  --there &\nother tool\n```\n\n```output\ntool is no command\n```\n"
	want := [][]string{{"run", "--here", "--there"}, {"paint", "a b", "--colour", "$RED"}, {"show", "all"}}
	if got := linesOf(page, "tool"); !reflect.DeepEqual(got, want) {
		t.Errorf("it finds %q, want %q", got, want)
	}
}

func TestAccepts(t *testing.T) {
	newRoot := func() *cobra.Command {
		root := &cobra.Command{Use: "tool", Args: cobra.NoArgs, Run: func(*cobra.Command, []string) {}}
		paint := &cobra.Command{Use: "paint", Args: cobra.ExactArgs(1), Run: func(*cobra.Command, []string) {}}
		paint.Flags().String("colour", "", "")
		_ = paint.MarkFlagRequired("colour")
		root.AddCommand(paint)
		return root
	}
	if err := accepts(newRoot(), []string{"paint", "it", "--colour", "red"}); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"draw"}, {"paint", "--colour", "red"}, {"paint", "it"}, {"paint", "it", "--colour", "red", "--size", "2"}} {
		if accepts(newRoot(), args) == nil {
			t.Errorf("it accepts %q", args)
		}
	}
}
