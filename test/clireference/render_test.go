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
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/homedir"
)

func TestRender(t *testing.T) {
	common := pflag.NewFlagSet("common", pflag.ContinueOnError)
	common.String("server", "", "the `URL` of the server")
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "tool", Long: "A tool for\n<things> and *others*."}
	paint := &cobra.Command{Use: "paint NAME", Short: "Paint it", Example: "  # In red\n  tool paint NAME --colour red", Run: run}
	paint.Flags().StringP("colour", "c", "red|blue", "the colour")
	paint.Flags().String("cache-dir", homedir.HomeDir()+"/.cache", "where it is kept")
	paint.Flags().AddFlagSet(common)
	secret := &cobra.Command{Use: "secret", Hidden: true, Run: run}
	parent := &cobra.Command{Use: "show", Short: "Show things", Run: run}
	parent.AddCommand(&cobra.Command{Use: "all", Short: "Show all", Run: run})
	root.AddCommand(paint, secret, parent)

	want := strings.ReplaceAll(`# tool

A tool for
\<things> and \*others\*.

'make generate' makes this page from the help of the commands.

| command | |
| --- | --- |
| [tool paint](#tool-paint) | Paint it |
| [tool show](#tool-show) | Show things |

## tool paint

Paint it.

'''text
tool paint NAME [flags]
'''

'''sh
# In red
tool paint NAME --colour red
'''

| flag | default | description |
| --- | --- | --- |
| '--cache-dir' string | '$HOME/.cache' | where it is kept |
| '-c', '--colour' string | 'red|blue' | the colour |

It has the [common flags](#common-flags) too.

## tool show

Show things.

| command | |
| --- | --- |
| [tool show all](#tool-show-all) | Show all |

## tool show all

Show all.

'''text
tool show all
'''

## Common flags

| flag | default | description |
| --- | --- | --- |
| '--server' URL | | the URL of the server |
`, "'", "`")
	want = strings.Replace(strings.Replace(want, "red|blue", `red\|blue`, 1), "URL | |", "URL |  |", 1)
	if got := Render(root, common); got != want {
		t.Errorf("the page is\n%s\nand should be\n%s", got, want)
	}
}
