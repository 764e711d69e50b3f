package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupAnnotation is the annotation of a flag that names its group in help.
const groupAnnotation = "lwsbt_group"

// exitCodes is the help text on exit codes, unless a command has its own.
const exitCodes = `0 done, 1 the input is damaged or a check failed, 2 usage, unreadable input
or nothing to do, 3 something outside failed, such as writing the output.`

// exitAnnotation is the annotation of a command with the meaning of its exit codes.
const exitAnnotation = "lwsbt_exit"

// Root prepares the root command of a program and, when it runs, all its
// subcommands: one help layout, --version, errors left to [Run], suggestions for
// mistyped commands and flags, and completion for bash, zsh, fish and PowerShell.
//
// Help is Long (or Short), the usage line, Example, commands, flags by group,
// and exit codes. It fits 80 columns if Long and Example do.
func Root(root *cobra.Command) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SuggestionsMinimumDistance = 2
	root.Version = Version()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { writeHelp(c.OutOrStdout(), c) })
	root.SetUsageFunc(func(c *cobra.Command) error { writeHelp(c.OutOrStderr(), c); return nil })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return BadArgs(explainFlag(c, err)) })
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return checkValues(c.Flags()) }
	root.CompletionOptions.HiddenDefaultCmd = true
	root.Flags().BoolP("help", "h", false, "show this help")
	root.Flags().Bool("version", false, "show the version")
	return root
}

// ExitCodes gives a command's help its own words on exit codes.
func ExitCodes(c *cobra.Command, text string) {
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[exitAnnotation] = text
}

// AddFlags adds flags to a command as a group of their own in help.
func AddFlags(c *cobra.Command, group string, flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[groupAnnotation] = []string{group}
	})
	c.Flags().SortFlags = false
	c.Flags().AddFlagSet(flags)
}

func writeHelp(w io.Writer, c *cobra.Command) {
	if f := c.Flags().Lookup("help"); f != nil {
		f.Usage = "show this help" // as of the root command, not "help for NAME"
	}
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(w, "%s\n\nUsage:\n", strings.TrimSpace(about))
	if c.Runnable() {
		fmt.Fprintf(w, "  %s\n", c.UseLine())
	}
	if c.HasAvailableSubCommands() && !strings.Contains(c.UseLine(), " COMMAND") {
		fmt.Fprintf(w, "  %s COMMAND ...\n", c.CommandPath())
	}
	if c.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n", "\n  "))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nCommands (%s COMMAND --help describes each):\n", c.CommandPath())
		for _, s := range c.Commands() {
			if s.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-*s  %s\n", c.NamePadding(), s.Name(), s.Short)
			}
		}
	}
	writeFlags(w, c)
	codes := exitCodes
	for p := c; p != nil; p = p.Parent() {
		if own := p.Annotations[exitAnnotation]; own != "" {
			codes = own
			break
		}
	}
	fmt.Fprintf(w, "\nExit codes:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(codes), "\n", "\n  "))
}

// writeFlags writes the flags by group, in the order in which groups were added.
func writeFlags(w io.Writer, c *cobra.Command) {
	groups := map[string]*pflag.FlagSet{}
	var order []string
	add := func(f *pflag.Flag) {
		name := "Flags"
		if g := f.Annotations[groupAnnotation]; len(g) > 0 {
			name = g[0]
		}
		if groups[name] == nil {
			groups[name] = pflag.NewFlagSet(name, pflag.ContinueOnError)
			groups[name].SortFlags = false
			order = append(order, name)
		}
		groups[name].AddFlag(f)
	}
	c.LocalFlags().SortFlags, c.InheritedFlags().SortFlags = false, false
	c.LocalFlags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	if i := slices.Index(order, "Flags"); i >= 0 && len(order) > 1 { // --help and others last
		order = append(slices.Delete(order, i, i+1), "Flags")
	}
	for _, name := range order {
		if groups[name].HasAvailableFlags() {
			fmt.Fprintf(w, "\n%s:\n%s", name, groups[name].FlagUsagesWrapped(DefaultWidth))
		}
	}
}

// explainFlag rewords an error of the flag library for users.
func explainFlag(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if best := similarFlag(c, unknown.GetSpecifiedName()); best != "" {
			return fmt.Errorf("%w; did you mean --%s?", err, best)
		}
	case errors.As(err, &bad):
		why := bad.Unwrap()
		if strings.HasPrefix(why.Error(), "time: ") {
			why = errors.New("expected a time such as 5s or 100ms")
		}
		return fmt.Errorf("--%s %q: %w", bad.GetFlag().Name, bad.GetValue(), why)
	}
	return err
}

// similarFlag returns the flag whose name is most like name, "" if there is none. It is the one
// that cobra would suggest if the flags were commands.
func similarFlag(c *cobra.Command, name string) string {
	flags := &cobra.Command{SuggestionsMinimumDistance: 2}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	if list := flags.SuggestionsFor(name); len(name) > 1 && len(list) > 0 {
		return list[0]
	}
	return ""
}

// checkValues rejects an empty value of a flag, which usually comes from an unset shell
// variable.
func checkValues(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = len(list.GetSlice()) == 0 || slices.Contains(list.GetSlice(), "")
		}
		if empty && err == nil {
			expected, _ := pflag.UnquoteUsage(f)
			err = BadArgsf("--%s %q: expected %s", f.Name, "", expected)
		}
	})
	return err
}

// Suggest returns " (did you mean NAME?)" if arg is nearly the name of a
// subcommand of c, and "" if it is not.
func Suggest(c *cobra.Command, arg string) string {
	if list := c.SuggestionsFor(arg); len(list) > 0 && arg != "" {
		return fmt.Sprintf(" (did you mean %q?)", c.CommandPath()+" "+list[0])
	}
	return ""
}

// Version returns the version of the program's module, which has the revision if the program was
// built from a clone of the repository, and the version of Go.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return cmp.Or(info.Main.Version, "(devel)") + " " + info.GoVersion
}
