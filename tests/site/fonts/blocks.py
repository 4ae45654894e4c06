from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

def glyph(points):
    pen = TTGlyphPen(None)
    if points:
        pen.moveTo(points[0])
        for p in points[1:]: pen.lineTo(p)
        pen.closePath()
    return pen.glyph()

square = [(0, 0), (0, 1000), (1000, 1000), (1000, 0)]
missing = [(0, 0), (0, 900), (900, 900), (900, 0)]
# Letters, and icons in the private use area.
letters = {c: f"b{c:x}" for c in [*range(0x21, 0x7F), *range(0xE9A0, 0xE9B0)]}
order = [".notdef", "space", *letters.values()]
fb = FontBuilder(1000, isTTF=True)
fb.setupGlyphOrder(order)
fb.setupCharacterMap({0x20: "space", **letters})
shapes = {"space": None, ".notdef": missing}
fb.setupGlyf({name: glyph(shapes.get(name, square)) for name in order})
fb.setupHorizontalMetrics({name: (1000, 0) for name in order})
fb.setupHorizontalHeader(ascent=1000, descent=0)
fb.setupNameTable({"familyName": "Blocks", "styleName": "Regular"})
fb.setupOS2(sTypoAscender=1000, sTypoDescender=0, sTypoLineGap=0, usWinAscent=1000, usWinDescent=0)
fb.setupPost()
fb.font.flavor = "woff2"
fb.save("blocks.woff2")
