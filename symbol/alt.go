package symbol

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// openAlt opens the file into which dwz moved what several debug files share.
func (d *dwarf) openAlt() error {
	link, err := d.file.section(".gnu_debugaltlink")
	name := stringAt(link, 0)
	if err != nil || name == nil {
		return err
	}
	id := hex.EncodeToString(link[len(name)+1:])
	path := string(name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.file.name), path)
	}
	g, err := openELF(d.file.tree, path)
	for _, dir := range DebugDirs() {
		if err != nil && len(id) > 2 {
			if h, e := openELF(d.file.tree, buildIDPath(dir, id)); e == nil {
				g, err = h, nil
			}
		}
	}
	if err == nil && g.BuildID != id {
		g.Close()
		err = fmt.Errorf("build-id %s, expected %s", orNone(g.BuildID), id)
	}
	if err != nil {
		return fmt.Errorf("shared debug information %s: %w", d.file.tree.path(path), err)
	}
	path = g.Path
	alt := &dwarf{order: g.order, file: g, abbrevs: map[abbrevKey]*abbrevTable{}, names: map[uint64]*string{}}
	for name, to := range map[string]*[]byte{".debug_info": &alt.info, ".debug_abbrev": &alt.abbrev,
		".debug_str": &alt.str} {
		if *to, err = g.section(name); err != nil {
			g.Close()
			return fmt.Errorf("shared debug information %s: %w", path, err)
		}
	}
	if err := alt.readUnits(); err != nil {
		g.Close()
		return fmt.Errorf("shared debug information %s: %w", path, err)
	}
	d.alt = alt
	d.file.close = append(d.file.close, g.Close)
	return nil
}
