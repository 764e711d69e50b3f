package dwarf

// Forms of attribute values. (DWARF 5, 7.5.6)
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// value is the unresolved value of an attribute. u is a number, an index, or an offset in the
// section that form implies; for formRef*, u is an offset in info. The zero value means that
// the attribute is absent.
type value struct {
	form uint32
	u    uint64
}

// formSize is the size of a form in bytes, -1 if it varies.
func (u *unit) formSize(form uint32) int {
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formStrx4, formAddrx4, formRefSup4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return u.addrSize
	case formRefAddr:
		if u.version == 2 {
			return u.addrSize
		}
		return u.offsetSize()
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return u.offsetSize()
	}
	return -1
}

func (u *unit) offsetSize() int {
	if u.dwarf64 {
		return 8
	}
	return 4
}

// value reads an attribute's value.
func (u *unit) value(c *cursor, a attrSpec) value {
	form := a.form
	if form == formIndirect {
		form = uint32(c.uleb())
	}
	v := value{form: form}
	switch form {
	case formImplicitConst:
		v.u = uint64(a.implicit)
	case formFlagPresent:
		v.u = 1
	case formSdata:
		v.u = uint64(c.sleb())
	case formUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.u = c.uleb()
	case formRefUdata:
		v.u = u.off + c.uleb()
	case formRef1, formRef2, formRef4, formRef8:
		v.u = u.off + c.uint(u.formSize(form))
	case formString:
		v.u = uint64(c.off)
		c.skipString()
	case formBlock1:
		c.skip(c.uint(1))
	case formBlock2:
		c.skip(c.uint(2))
	case formBlock4:
		c.skip(c.uint(4))
	case formBlock, formExprloc:
		c.skip(c.uleb())
	case formData16:
		c.skip(16)
	default:
		n := u.formSize(form)
		if n < 0 { // unknown size: nothing after it can be read
			c.fail()
			return v
		}
		v.u = c.uint(n)
	}
	return v
}

// skip moves past an attribute's value.
func (u *unit) skip(c *cursor, a attrSpec) {
	if n := u.formSize(a.form); n >= 0 {
		c.skip(uint64(n))
		return
	}
	u.value(c, a)
}

// text resolves a string value.
func (u *unit) text(v value) []byte {
	d := u.d
	switch v.form {
	case formString:
		return stringAt(d.Info, v.u)
	case formStrp:
		return stringAt(d.Str, v.u)
	case formLineStrp:
		return stringAt(d.LineStr, v.u)
	case formStrx, formStrx1, formStrx2, formStrx3, formStrx4, formGNUStrIndex:
		if v.u > uint64(len(d.StrOffsets)) {
			return nil
		}
		c := d.at(d.StrOffsets, u.strBase+v.u*uint64(u.offsetSize()))
		off := c.offset(u.dwarf64)
		if c.bad {
			return nil
		}
		return stringAt(d.Str, off)
	case formStrpSup, formGNUStrpAlt:
		if d.Alt != nil {
			return stringAt(d.Alt.Str, v.u)
		}
	}
	return nil
}

// address resolves an address value.
func (u *unit) address(v value) uint64 {
	switch v.form {
	case formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		if v.u > uint64(len(u.d.Addr)) {
			return 0
		}
		c := u.d.at(u.d.Addr, u.addrBase+v.u*uint64(u.addrSize))
		return c.uint(u.addrSize)
	}
	return v.u
}

// isAddress reports whether a high PC is an address and not a length.
func (v value) isAddress() bool {
	switch v.form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex:
		return true
	}
	return false
}
