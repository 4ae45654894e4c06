/** The file `elements` of a grab, which `also: ["elements"]` asks for. */
export interface ElementsFile {
  /** The size of the image in pixels. */
  image: { width: number; height: number };
  elements: PageElement[];
}

/** An element that a user can operate, as the image shows it. */
export interface PageElement {
  /** The ARIA role; `generic` if there is none. */
  role: string;
  /** The accessible name. */
  name: string;
  /** Matches this element only. Null in shadow trees. */
  selector: string | null;
  /** Its place in pixels of the image. */
  box: { x: number; y: number; width: number; height: number };
  /** What a click on it would meet instead. Null if nothing is in front of it, `unknown` if that cannot be said. */
  covered_by: CoveredBy | "unknown" | null;
  /** The target of a link. */
  url?: string;
  checked?: boolean | "mixed";
  pressed?: boolean | "mixed";
  disabled?: boolean;
  required?: boolean;
  expanded?: boolean;
  selected?: boolean;
  /** The value of a field, a list or a slider. Values of passwords are left out. */
  value?: string;
  /** The selectors of the frames that lead to it. Null if one of them has none. Left out outside of frames. */
  frame?: string | null;
}

/** What is in front of an element. */
export interface CoveredBy {
  /** Matches what is in front. Null in shadow trees. */
  selector: string | null;
  /** Its accessible name, or an empty text. */
  name: string;
}
